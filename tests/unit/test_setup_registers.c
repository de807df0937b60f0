/* SPDX-License-Identifier: MIT */
/* Registers of a setup that no format has are reported, with the names that they resemble. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data.h"
#include "import/bundle.h"
#include "setup/registers.h"

#include <stdio.h>
#include <string.h>

static char said[4000];

static void collect(void *context, const char *text)
{
    assert_null(context);
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

static void expect(const char *text, const char *report)
{
    struct tl_setup setup;
    struct tl_fail fail;
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, text, strlen(text), &fail), TL_OK);
    said[0] = '\0';
    tl_setup_check_registers(&setup, collect, NULL);
    assert_string_equal(said, report);
    tl_setup_fini(&setup);
}

static void misspelt_names(void **state)
{
    expect("[source cs.10]\nprotocol=etm4\nTRCCONFGR=1\nTRCIDRO=2\ntrciddr1=3\nTRCEVENTCLT1R=4\n",
           "[source cs.10]: unknown register TRCCONFGR is ignored; did you mean TRCCONFIGR?\n"
           "[source cs.10]: unknown register TRCIDRO is ignored; did you mean TRCIDR0?\n"
           "[source cs.10]: unknown register trciddr1 is ignored; did you mean TRCIDR1?\n"
           "[source cs.10]: unknown register TRCEVENTCLT1R is ignored; did you mean "
           "TRCEVENTCTL1R?\n");
    expect("[source pt.0]\nprotocol=pt\nMTC_FRQ=3\nADR1_B=4\nclok=5\nWHATEVER=6\n",
           "[source pt.0]: unknown register MTC_FRQ is ignored; did you mean MTC_FREQ?\n"
           "[source pt.0]: unknown register ADR1_B is ignored; did you mean ADDR1_B?\n"
           "[source pt.0]: unknown register clok is ignored; did you mean clock?\n"
           "[source pt.0]: unknown register WHATEVER is ignored\n");
    expect("[source mtb.0]\nprotocol=mtb\nPOSITON=1\nMTB_MASTER=2\nVTOR=3\n",
           "[source mtb.0]: unknown register POSITON is ignored; did you mean POSITION?\n");
    expect("[source di.0.1]\nprotocol=osd-ctm\nADDR_WITH=32\n",
           "[source di.0.1]: unknown register ADDR_WITH is ignored; did you mean ADDR_WIDTH?\n");
    expect("[source nt.1]\nprotocol=n-trace\ntrTeInstMod=6\ntrTeInstFeature=1\ntrTSWidth=40\n",
           "[source nt.1]: unknown register trTeInstMod is ignored; did you mean trTeInstMode?\n"
           "[source nt.1]: unknown register trTeInstFeature is ignored; did you mean "
           "trTeInstFeatures?\n");
    expect("[trace]\nformat=etrace-smi\n[source "
           "et.1]\niaddress_width=64\nbpred_size=2\ntrTeControll=1\n",
           "[source et.1]: unknown register iaddress_width is ignored; did you mean "
           "iaddress_width_p?\n"
           "[source et.1]: unknown register bpred_size is ignored; did you mean bpred_size_p?\n"
           "[source et.1]: unknown register trTeControll is ignored; did you mean trTeControl?\n");
    expect("[source cs.20]\nprotocol=itm\nITM_TCR=1\n[source cs.30]\nprotocol=stm\nSTMTCR=2\n",
           "[source cs.20]: unknown register ITM_TCR is ignored; did you mean ITMTCR?\n"
           "[source cs.30]: unknown register STMTCR is ignored; did you mean STMTCSR?\n");
    expect("[source cs.10]\nprotocol=ete\nABCDEFGHIJKLMNOPQRSTUVWXYZ_123=1\nX=2\n",
           "[source cs.10]: unknown register ABCDEFGHIJKLMNOPQRSTUVWXYZ_123 is ignored\n"
           "[source cs.10]: unknown register X is ignored\n");
}

static void known_names(void **state)
{
    expect(
        "[source cs.10]\nprotocol=ete\ntrcconfigr=1\nTRCIDR13(0x1f4)=2\nTRCPIDR0=3\nTRCACVR15=4\n"
        "TRCITMISCOUTR=5\nTRCEXTINSELR=6\nclock=100\n[source "
        "cs.20]\nprotocol=stm\nSTMTCSR=1\nSTMHEFEAT1R=2\n"
        "[source cs.30]\nprotocol=itm\nITMTCR=1\nCONTROL_REGISTER=2\nITMTER0=3\n"
        "[source nt.1]\nprotocol=nexus-sifive\ntrTeControl=1\ntrTeFilter0Control=2\ntrtsenable=3\n"
        "[source et.1]\nprotocol=e-trace\ntrTeControl=1\nmtvec=2\nnotime_p=3\n",
        "");
}

static void real_snapshots(void **state)
{
    static const char *const names[] = {"juno_r1_1",     "a55-test-tpiu", "ete_ip",
                                        "tme_simple",    "stm_only-juno", "itm_only_raw",
                                        "infrastructure"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[80], path[600];
        struct tl_bundle bundle;
        struct tl_fail fail;
        snprintf(name, sizeof name, "coresight/snapshots/%s", names[i]);
        if (!test_data(path, sizeof path, name)) {
            print_message("skipped: no captures here\n");
            skip();
        }
        assert_int_equal(tl_snapshot_read(&bundle, path, NULL, NULL, &fail), TL_OK);
        said[0] = '\0';
        for (size_t k = 0; k < bundle.n_captures; k++)
            tl_setup_check_registers(&bundle.captures[k].setup, collect, NULL);
        assert_string_equal(said, "");
        tl_bundle_fini(&bundle);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misspelt_names),
        cmocka_unit_test(known_names),
        cmocka_unit_test(real_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
