package sys

import "golang.org/x/sys/unix"

// HasBrainFloat reports whether the processor has the instructions of the extension BF16, for
// BFloat16 numbers: https://docs.kernel.org/arch/arm64/elf_hwcaps.html.
func HasBrainFloat() bool {
	const hwcap2, bf16 = 26, 1 << 14 // AT_HWCAP2 and HWCAP2_BF16
	vector, err := unix.Auxv()
	if err != nil {
		return false
	}
	for _, entry := range vector {
		if entry[0] == hwcap2 {
			return entry[1]&bf16 != 0
		}
	}
	return false
}
