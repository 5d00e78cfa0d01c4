package arena

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Report reads the domain's counters, and what each participant holds.
func (d *Domain) Report() Report {
	return Report{PID: os.Getpid(), Seat: d.seat, Stats: d.Stats(), Holders: d.holders(maxParticipants),
		Names: d.Names()}
}

const maxReport = 1 << 20 // bytes of JSON

// Inspect asks the domain at addr, of this user, for a report. It maps nothing and needs no token.
// It ends with ctx, or when there is no answer for five seconds.
func Inspect(ctx context.Context, addr string) (Report, error) {
	var r Report
	if err := ask(ctx, addr, wantInspect, maxReport, &r, &r); err != nil {
		return Report{}, fmt.Errorf("inspect domain at %s: %w", addr, err)
	}
	return r, nil
}

// Domains returns the addresses of this user's domains in this network namespace that can be
// inspected, sorted.
func Domains() ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	defer f.Close()
	all, err := listening(f, fmt.Sprintf("@shoal/%d/", os.Getuid()))
	if err != nil {
		return nil, fmt.Errorf("list domains: %w", err)
	}
	return all, nil
}

// listening reads the kernel's table of Unix sockets: address, count, protocol, flags, type, state,
// inode, path. The flag 0x10000 says that somebody accepts connections there.
func listening(table io.Reader, prefix string) (all []string, err error) {
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
