/* A libdcmi.so that answers as told at compile time; see test_dcmi_helper.py. Signatures: the DCMI manual of 910B. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#ifndef INIT
#define INIT 0
#endif
#ifndef CARDS
#define CARDS 2
#endif
#ifndef CHIPS_CODE
#define CHIPS_CODE 0
#endif
#ifndef CODE
#define CODE 0
#endif
#ifndef BLOCKS_AT
#define BLOCKS_AT -1
#endif
#ifndef CRASHES_AT
#define CRASHES_AT -1
#endif
#ifndef AVERAGE
#define AVERAGE(card) (10 + (card))
#endif

struct dcmi_pcie_link_bandwidth_info {
    int profiling_time;
    unsigned int tx_p_bw[3], tx_np_bw[3], tx_cpl_bw[3], tx_np_lantency[3], rx_p_bw[3], rx_np_bw[3], rx_cpl_bw[3];
};

int dcmi_init(void)
{
    printf("DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n");
    fflush(stdout);
    return INIT;
}

int dcmi_get_card_list(int *count, int *list, int length)
{
    int card;
    for (card = 0; card < CARDS && card < length; card++)
        list[card] = card * 8;
    *count = CARDS;
    return 0;
}

int dcmi_get_device_id_in_card(int card, int *chips, int *mcu, int *cpu)
{
    *chips = 1;
    *mcu = 1;
    *cpu = -1;
    return card == 8 ? CHIPS_CODE : 0;
}

#ifndef WITHOUT_BANDWIDTH
static void fill(unsigned int *values, unsigned int average)
{
    values[0] = 0;
    values[1] = average + 5;
    values[2] = average;
}

int dcmi_get_pcie_link_bandwidth_info(int card, int device, struct dcmi_pcie_link_bandwidth_info *info)
{
    if (card == CRASHES_AT)
        raise(SIGSEGV);
    while (card == BLOCKS_AT)
        pause();
    if (device != 0)
        return -8007;
    if (card == 8 && CODE)
        return CODE;
    usleep(info->profiling_time * 1000);
    fill(info->tx_p_bw, AVERAGE(card));
    fill(info->tx_np_bw, 1);
    fill(info->tx_cpl_bw, 2);
    fill(info->tx_np_lantency, 900);
    fill(info->rx_p_bw, 3);
    fill(info->rx_np_bw, 4);
    fill(info->rx_cpl_bw, 20);
    return 0;
}
#endif
