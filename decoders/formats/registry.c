/* SPDX-License-Identifier: MIT */
/*
 * The only list of supported formats. It contains no code, so that a program can link other tables
 * instead.
 */
#include "decode/registry.h"

/* Arm IHI 0064, "Trace unit registers"; DDI 0487, D24.4 */
#define ETM_REGISTERS                                                                              \
    "TRCCONFIGR TRCTRACEIDR TRCIDR# TRCDEVARCH TRCAUTHSTATUS TRCPRGCTLR TRCPROCSELR TRCSTATR "     \
    "TRCAUXCTLR TRCEVENTCTL#R TRCRSR TRCSTALLCTLR TRCTSCTLR TRCSYNCPR TRCCCCTLR TRCBBCTLR "        \
    "TRCQCTLR TRCITEEDCR TRCVICTLR TRCVIIECTLR TRCVISSCTLR TRCVIPCSSCTLR TRCVDCTLR TRCVDSACCTLR "  \
    "TRCVDARCCTLR TRCSEQEVR# TRCSEQRSTEVR TRCSEQSTR TRCEXTINSELR TRCEXTINSELR# TRCCNTRLDVR# "      \
    "TRCCNTCTLR# TRCCNTVR# TRCIMSPEC# TRCRSCTLR# TRCSSCCR# TRCSSCSR# TRCSSPCICR# TRCOSLAR "        \
    "TRCOSLSR TRCPDCR TRCPDSR TRCACVR# TRCACATR# TRCDVCVR# TRCDVCMR# TRCCIDCVR# TRCCIDCCTLR# "     \
    "TRCVMIDCVR# TRCVMIDCCTLR# TRCITCTRL TRCCLAIMSET TRCCLAIMCLR TRCDEVAFF# TRCLAR TRCLSR "        \
    "TRCDEVID TRCDEVID# TRCDEVTYPE TRCPIDR# TRCCIDR# TRCIT* VTOR"
/* Arm IHI0014Q and IHI0035B, "Programmers' model": ETMv3 and PTM */
#define ETM3_REGISTERS                                                                             \
    "ETMCR ETMCCR ETMTRIGGER ETMASICCR ETMSR ETMSCR ETMTSSCR ETMTECR# ETMTEEVR ETMFFRR ETMFFLR "   \
    "ETMVDEVR ETMVDCR# ETMACVR# ETMACTR# ETMDCVR# ETMDCMR# ETMCNTRLDVR# ETMCNTENR# ETMCNTRLDEVR# " \
    "ETMCNTVR# ETMSQ#EVR ETMSQR ETMEXTOUTEVR# ETMCIDCVR# ETMCIDCMR ETMIMPSPEC# ETMSYNCFR ETMIDR "  \
    "ETMCCER ETMEXTINSELR ETMTESSEICR ETMEIBCR ETMTSEVR ETMAUXCR ETMTRACEIDR ETMIDR2 ETMVMIDCVR "  \
    "ETMOSLAR ETMOSLSR ETMOSSRR ETMPDCR ETMPDSR ETMIT* ETMITCTRL ETMCLAIMSET ETMCLAIMCLR ETMLAR "  \
    "ETMLSR ETMAUTHSTATUS ETMDEVID ETMDEVTYPE ETMPIDR# ETMCIDR# VTOR"
/* Arm DDI0486 (CoreSight MTB-M0+); and what a debugger knows: where the dump begins, the width of
 * the RAM's addresses, the processor's PC and vector table */
#define MTB_NAMES(prefix)                                                                          \
    prefix "POSITION " prefix "MASTER " prefix "FLOW " prefix "BASE " prefix "AWIDTH "
#define MTB_REGISTERS MTB_NAMES("") MTB_NAMES("MTB_") "RAM VTOR PC"
#define PT_REGISTERS  "MTC_FREQ NOM_FREQ CPUID_15_EAX CPUID_15_EBX ADDR_CFG ADDR#_A ADDR#_B"
/* Armv7-M ARM (DDI 0403), C1.7; CoreSight components TRM (DDI 0314), "Instrumentation Trace
 * Macrocell"; as snapshots name them */
#define ITM_REGISTERS                                                                              \
    "ITMTCR CONTROL_REGISTER ITMTER ITMTER# ITMTPR ITMTTR ITMSTIM# ITMSCR ITMCR ITMIWR ITMIRR "    \
    "ITMIMCR ITMLAR ITMLSR ITMIT* ITMPID# ITMPIDR# ITMCID# ITMCIDR# ITMDEVTYPE ITMDEVID "          \
    "ITMDEVARCH ITMAUTHSTATUS ITMCLAIMSET ITMCLAIMCLR "                                            \
    "DWT_CTRL DWT_CYCCNT DWT_CPICNT DWT_EXCCNT DWT_SLEEPCNT DWT_LSUCNT DWT_FOLDCNT DWT_PCSR "      \
    "DWT_COMP# DWT_MASK# DWT_FUNCTION# DWT_VMASK# DWT_DEVARCH VTOR"
/* STM-500 TRM (DDI 0528) and STM architecture (IHI 0054) */
#define STM_REGISTERS                                                                              \
    "STMTCSR STMTSSTIMR STMTSFREQR STMSYNCR STMAUXCR STMSPER STMSPTER STMPRIVMASKR STMSPSCR "      \
    "STMSPMSCR STMSPOVERRIDER STMSPMOVERRIDER STMSPTRIGCSR STMFEAT#R STMHEER STMHETER STMHEBSR "   \
    "STMHEMCR STMHEEXTMUXR STMHEMASTR STMHEFEAT#R STMHEIDR STMDMASTARTR STMDMASTOPR STMDMASTATR "  \
    "STMDMACTLR STMDMAIDR STMIT* STMCLAIMSET STMCLAIMCLR STMLAR STMLSR STMAUTHSTATUS STMDEVARCH "  \
    "STMDEVID STMDEVID# STMDEVTYPE STMDEVAFF# STMPIDR# STMCIDR#"
/* Of all modules, as bring-up reads them. */
#define OSD_REGISTERS                                                                              \
    "MOD_TYPE MAX_PKT_LEN ADDR_WIDTH DATA_WIDTH VALWIDTH SYSTEM_VENDOR_ID SYSTEM_DEVICE_ID "       \
    "NUM_MOD CORE_CTRL CORE_REG_UPPER CORE_DATA_WIDTH"

/*
 * RISC-V Trace Control Interface 1.0: registers of the encoder and of timestamps, and their fields,
 * which may be given instead; registers of what the trace passes on its way.
 */
#define TRACE_CONTROL                                                                              \
    "trTeControl trTeImpl trTeInstFeatures trTeInstFilters trTeDataControl trTeDataFilters "       \
    "trTsControl trTsCounterLow trTsCounterHigh trTeFilter#* trTeComp#* "                          \
    "trTeActive trTeEnable trTeInstTracing trTeEmpty trTeInstMode trTeContext trTeInstTrigEnable " \
    "trTeInstStallOrOverflow trTeInstStallEna trTeInhibitSrc trTeInstSyncMode trTeInstSyncMax "    \
    "trTeFormat trTeVerMajor trTeVerMinor trTeCompType trTeProtocolMajor trTeProtocolMinor "       \
    "trTeVendorSpecific trTeSrcID trTeSrcBits trTeInstNoAddrDiff trTeInstNoTrapAddr "              \
    "trTeInstEnSequentialJump trTeInstEnImplicitReturn trTeInstEnBranchPrediction "                \
    "trTeInstEnJumpTargetCache trTeInstImplicitReturnMode trTeInstEnRepeatedHistory "              \
    "trTeInstEnAllJumps trTeInstExtendAddrMSB trTeDataImplemented trTeDataTracing "                \
    "trTeDataTrigEnable trTeDataStallOrOverflow trTeDataStallEna trTeDataDrop trTeDataDropEna "    \
    "trTeDataNoValue trTeDataNoAddr trTeDataAddrCompress trTsActive trTsCount trTsReset "          \
    "trTsRunInDebug trTsMode trTsDebug trTsEnable trTsType trTsPrescale trTsBranch trTsInstTrace " \
    "trTsOwnership trTsWidth trRam* trFunnel* trPib* trAtb* "
#define NEXUS_REGISTERS TRACE_CONTROL "call_stack_depth addrbits jvt"

#define FOLLOWED (TL_TRAIT_FLOW | TL_TRAIT_BLOCKS)

/* E-Trace 2.0, "Discovery of encoder parameters"; trap vectors of the privileged architecture */
#define ETRACE_REGISTERS                                                                           \
    "iaddress_width_p iaddress_lsb_p privilege_width_p ecause_width_p ecause_choice_p "            \
    "time_width_p notime_p context_width_p nocontext_p return_stack_size_p call_counter_size_p "   \
    "bpred_size_p cache_size_p f0s_width_p sijump_p impdef_width_p itype_width_p blocks_p "        \
    "retires_p taken_branches_p ctype_width_p arch_p bypass_p notimestamp_p delta_from_sync_p "    \
    "encoder_mode_width_p ioptions_width_p ioptions utvec stvec mtvec vstvec jvt "                 \
    "ts_bytes type_bits " TRACE_CONTROL

const struct tl_format tl_formats[] = {
    [TL_PROTO_NONE] = {"none", "", TL_TRAIT_BLOCKS},
    [TL_PROTO_ORBFLOW] = {"orbflow", "orbuculum's connections", 0, "", TL_CONTAINER_ORBFLOW},
    [TL_PROTO_TPIU] = {"tpiu", "Arm IHI0029E D4", 0, "", TL_CONTAINER_TPIU},
    [TL_PROTO_ETM4] = {"etm4", "Arm IHI0064H (ETMv4.0 to 4.6)", FOLLOWED, "cs", TL_CONTAINER_SINGLE,
                       &tl_etm4_ops, TL_ISA_A64, ETM_REGISTERS},
    [TL_PROTO_ETE] = {"ete", "Arm DDI0487 D5 and D6", FOLLOWED | TL_TRAIT_WRITES, "cs",
                      TL_CONTAINER_SINGLE, &tl_etm4_ops, TL_ISA_A64, ETM_REGISTERS},
    [TL_PROTO_ETM3] = {"etm3", "Arm IHI0014Q (ETMv3.0 to 3.5)", FOLLOWED, "cs", TL_CONTAINER_SINGLE,
                       &tl_etm3_ops, TL_ISA_A32, ETM3_REGISTERS},
    [TL_PROTO_ETM3_DATA] = {"etm3-data", "Arm IHI0014Q, data trace without instructions",
                            TL_TRAIT_NOTES, .isa = TL_ISA_A32},
    [TL_PROTO_PTM] = {"ptm", "Arm IHI0035B (PFT 1.0 and 1.1)", FOLLOWED, "cs", TL_CONTAINER_SINGLE,
                      &tl_etm3_ops, TL_ISA_A32, ETM3_REGISTERS},
    [TL_PROTO_MTB] = {"mtb", "Arm DDI0486 (CoreSight MTB-M0+)", FOLLOWED, "mtb",
                      TL_CONTAINER_SINGLE, &tl_mtb_ops, TL_ISA_T32, MTB_REGISTERS},
    [TL_PROTO_ITM] = {"itm", "Arm DDI0403E appendix D4", TL_TRAIT_SOFTWARE, "cs",
                      TL_CONTAINER_SINGLE, &tl_itm_ops, TL_ISA_T32, ITM_REGISTERS},
    [TL_PROTO_STM] = {"stm", "MIPI STPv2", TL_TRAIT_SOFTWARE, "cs", TL_CONTAINER_SINGLE,
                      &tl_stm_ops, TL_ISA_A64, STM_REGISTERS},
    [TL_PROTO_DI] = {"di", "Open SoC Debug DI", 0, "", TL_CONTAINER_DI},
    [TL_PROTO_PERF] = {"perf", "Linux perf.data", 0, "", TL_CONTAINER_PERF},
    [TL_PROTO_PERF_EVENTS] = {"perf-events", "Linux perf.data", TL_TRAIT_NOTES},
    [TL_PROTO_SPE] = {"spe", "Arm DDI0487, Statistical Profiling Extension",
                      TL_TRAIT_SOFTWARE | TL_TRAIT_SAMPLES, .isa = TL_ISA_A64},
    [TL_PROTO_OSD_CTM] = {"osd-ctm", "Open SoC Debug CTM", TL_TRAIT_FLOW | TL_TRAIT_CALLS,
                          .isa = TL_ISA_RV64, .registers = OSD_REGISTERS},
    [TL_PROTO_OSD_STM] = {"osd-stm", "Open SoC Debug STM", TL_TRAIT_SOFTWARE, .isa = TL_ISA_RV64,
                          .registers = OSD_REGISTERS},
    [TL_PROTO_OSD_UART] = {"osd-uart", "Open SoC Debug DEM-UART", TL_TRAIT_SOFTWARE,
                           .isa = TL_ISA_RV64, .registers = OSD_REGISTERS},
    [TL_PROTO_OSD_OTHER] = {"osd", "Open SoC Debug", TL_TRAIT_NOTES, .isa = TL_ISA_RV64,
                            .registers = OSD_REGISTERS},
    [TL_PROTO_PT] = {"pt", "Intel SDM volume 3, Intel Processor Trace", FOLLOWED, "pt",
                     TL_CONTAINER_SINGLE, &tl_pt_ops, TL_ISA_X64, PT_REGISTERS},
    [TL_PROTO_STF] = {"stf", "STF 1.3", TL_TRAIT_FLOW | TL_TRAIT_RECORDS, "stf", TL_CONTAINER_STF},
    [TL_PROTO_STF_TRANSACTIONS] = {"transactions", "STF 1.3, transactions", TL_TRAIT_SOFTWARE},
    [TL_PROTO_N_TRACE] = {"n-trace", "RISC-V N-Trace 1.0", FOLLOWED, .ops = &tl_nexus_stream_ops,
                          .isa = TL_ISA_RV64, .registers = NEXUS_REGISTERS},
    [TL_PROTO_NTRACE] = {"ntrace", "RISC-V N-Trace 1.0", 0, "nt", TL_CONTAINER_NEXUS},
    [TL_PROTO_NEXUS_SIFIVE] = {"nexus-sifive", "SiFive's Nexus messages",
                               FOLLOWED | TL_TRAIT_WRITES, "nt", TL_CONTAINER_NEXUS,
                               &tl_nexus_stream_ops, TL_ISA_RV64, NEXUS_REGISTERS},
    [TL_PROTO_E_TRACE] = {"e-trace", "RISC-V E-Trace 2.0", FOLLOWED, .ops = &tl_etrace_stream_ops,
                          .isa = TL_ISA_RV64, .registers = ETRACE_REGISTERS},
    [TL_PROTO_ETRACE_ENCAP] = {"etrace-encap", "RISC-V packet encapsulation 1.0.0", 0, "et",
                               TL_CONTAINER_ETRACE},
    [TL_PROTO_ETRACE_SMI] = {"etrace-smi", "Siemens' messages with E-Trace", 0, "et",
                             TL_CONTAINER_ETRACE},
    [TL_PROTO_ETRACE_ESP32] = {"etrace-esp32", "Espressif ESP32-C6 TRM, RISC-V trace encoder", 0,
                               "et", TL_CONTAINER_ETRACE},
};
const unsigned tl_n_formats = sizeof tl_formats / sizeof *tl_formats;

const struct tl_decode_ops *const tl_containers[TL_CONTAINERS] = {
    [TL_CONTAINER_TPIU] = &tl_coresight_ops,  [TL_CONTAINER_SINGLE] = &tl_coresight_ops,
    [TL_CONTAINER_DI] = &tl_osd_ops,          [TL_CONTAINER_STF] = &tl_stf_ops,
    [TL_CONTAINER_PERF] = &tl_perf_ops,       [TL_CONTAINER_NEXUS] = &tl_nexus_ops,
    [TL_CONTAINER_ORBFLOW] = &tl_orbflow_ops, [TL_CONTAINER_ETRACE] = &tl_etrace_ops,
};
