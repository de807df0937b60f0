/* SPDX-License-Identifier: MIT */
/*
 * A table of part numbers by implementer. Only names are kept, since a setup's core= is all that
 * decoders ask for: architecture and profile follow from it.
 */
#include "setup/midr.h"

#include <stddef.h>

enum { ARM = 0x41, CAVIUM = 0x43, FUJITSU = 0x46, HISILICON = 0x48, NVIDIA = 0x4e, AMPERE = 0xc0 };

static const struct core {
    uint8_t implementer;
    uint16_t part;
    const char *name;
} cores[] = {
    {ARM, 0xc05, "Cortex-A5"},    {ARM, 0xc07, "Cortex-A7"},         {ARM, 0xc08, "Cortex-A8"},
    {ARM, 0xc09, "Cortex-A9"},    {ARM, 0xc0e, "Cortex-A17"},        {ARM, 0xc0f, "Cortex-A15"},
    {ARM, 0xc14, "Cortex-R4"},    {ARM, 0xc15, "Cortex-R5"},         {ARM, 0xc17, "Cortex-R7"},
    {ARM, 0xc18, "Cortex-R8"},    {ARM, 0xc20, "Cortex-M0"},         {ARM, 0xc21, "Cortex-M1"},
    {ARM, 0xc23, "Cortex-M3"},    {ARM, 0xc24, "Cortex-M4"},         {ARM, 0xc27, "Cortex-M7"},
    {ARM, 0xc60, "Cortex-M0+"},   {ARM, 0xd01, "Cortex-A32"},        {ARM, 0xd02, "Cortex-A34"},
    {ARM, 0xd03, "Cortex-A53"},   {ARM, 0xd04, "Cortex-A35"},        {ARM, 0xd05, "Cortex-A55"},
    {ARM, 0xd06, "Cortex-A65"},   {ARM, 0xd07, "Cortex-A57"},        {ARM, 0xd08, "Cortex-A72"},
    {ARM, 0xd09, "Cortex-A73"},   {ARM, 0xd0a, "Cortex-A75"},        {ARM, 0xd0b, "Cortex-A76"},
    {ARM, 0xd0c, "Neoverse N1"},  {ARM, 0xd0d, "Cortex-A77"},        {ARM, 0xd0e, "Cortex-A76AE"},
    {ARM, 0xd13, "Cortex-R52"},   {ARM, 0xd15, "Cortex-R82"},        {ARM, 0xd20, "Cortex-M23"},
    {ARM, 0xd21, "Cortex-M33"},   {ARM, 0xd40, "Neoverse V1"},       {ARM, 0xd41, "Cortex-A78"},
    {ARM, 0xd42, "Cortex-A78AE"}, {ARM, 0xd43, "Cortex-A65AE"},      {ARM, 0xd44, "Cortex-X1"},
    {ARM, 0xd46, "Cortex-A510"},  {ARM, 0xd47, "Cortex-A710"},       {ARM, 0xd48, "Cortex-X2"},
    {ARM, 0xd49, "Neoverse N2"},  {ARM, 0xd4a, "Neoverse E1"},       {ARM, 0xd4b, "Cortex-A78C"},
    {ARM, 0xd4c, "Cortex-X1C"},   {ARM, 0xd4d, "Cortex-A715"},       {ARM, 0xd4e, "Cortex-X3"},
    {ARM, 0xd4f, "Neoverse V2"},  {ARM, 0xd80, "Cortex-A520"},       {ARM, 0xd81, "Cortex-A720"},
    {ARM, 0xd82, "Cortex-X4"},    {ARM, 0xd83, "Neoverse V3AE"},     {ARM, 0xd84, "Neoverse V3"},
    {ARM, 0xd85, "Cortex-X925"},  {ARM, 0xd87, "Cortex-A725"},       {CAVIUM, 0x0af, "ThunderX2"},
    {FUJITSU, 0x001, "A64FX"},    {HISILICON, 0xd01, "Kunpeng 920"}, {NVIDIA, 0x004, "Carmel"},
    {AMPERE, 0xac3, "Ampere-1"},  {AMPERE, 0xac4, "Ampere-1A"},
};

const char *tl_midr_name(uint64_t midr)
{
    const unsigned implementer = midr >> 24 & 0xff, part = midr >> 4 & 0xfff;
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (cores[i].implementer == implementer && cores[i].part == part)
            return cores[i].name;
    return NULL;
}
