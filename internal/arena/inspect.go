package arena

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Report returns the domain's counters, its bound names, and the bytes that each participant holds.
func (d *Domain) Report() Report {
	return Report{PID: os.Getpid(), Seat: d.seat, Stats: d.Stats(), Holders: d.topHolders(word.MaxParticipants),
		Names: d.Names()}
}

// maxReport is the maximum size of a [Report] in JSON, in bytes.
const maxReport = 1 << 20

// Inspect asks the domain at addr for a [Report]. The domain must belong to this user, or the error
// wraps [ErrUser]. Inspect maps no memory and needs no token. It fails when ctx ends, or after five
// seconds without an answer.
func Inspect(ctx context.Context, addr string) (Report, error) {
	var r Report
	if err := requestReport(ctx, addr, wantInspect, maxReport, &r, &r); err != nil {
		return Report{}, fmt.Errorf("inspect domain at %s: %w", addr, err)
	}
	return r, nil
}

// Domains returns the sorted addresses of this user's domains in this network namespace that can be
// inspected or observed.
func Domains() ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	defer f.Close()
	all, err := listeningAddresses(f, fmt.Sprintf("@shoal/%d/", os.Getuid()))
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	return all, nil
}

// listeningAddresses parses /proc/net/unix and returns the listening addresses with the given
// prefix, except those for joining. The columns are address, count, protocol, flags, type, state,
// inode and path. Flag 0x10000, __SO_ACCEPTCON, marks a listening socket:
// https://github.com/torvalds/linux/blob/v6.12/net/unix/af_unix.c (unix_seq_show).
func listeningAddresses(table io.Reader, prefix string) (all []string, err error) {
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
