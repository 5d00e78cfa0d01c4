package socket

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Addresses returns the sorted addresses of this user's listeners in this network namespace, except
// those for joining.
func Addresses() ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseAddresses(f, fmt.Sprintf("@shoal/%d/", os.Getuid()))
}

// ParseAddresses parses /proc/net/unix and returns the sorted listening addresses with the given
// prefix, except those for joining. It skips malformed lines. The columns are address, count,
// protocol, flags, type, state, inode and path. Flag 0x10000, __SO_ACCEPTCON, marks a listening
// socket: https://github.com/torvalds/linux/blob/v6.12/net/unix/af_unix.c (unix_seq_show).
func ParseAddresses(table io.Reader, prefix string) (all []string, err error) {
	s := bufio.NewScanner(table)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) == 8 && f[3] == "00010000" && strings.HasPrefix(f[7], prefix) &&
			!strings.HasSuffix(f[7], joinSuffix) {
			all = append(all, f[7])
		}
	}
	slices.Sort(all)
	return slices.Compact(all), s.Err()
}
