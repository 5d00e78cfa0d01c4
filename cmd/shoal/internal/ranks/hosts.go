package ranks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrOption is wrapped by errors about invalid options.
var ErrOption = errors.New("shoal run")

// A Host is a machine and its number of ranks.
type Host struct {
	Name  string // empty for this machine
	Ranks int
}

// ParseHosts parses a list such as "a:2,b:2". A host without a number has one rank. The error wraps
// [ErrOption].
func ParseHosts(list string) (hosts []Host, err error) {
	for item := range strings.SplitSeq(list, ",") {
		name, number, numbered := strings.Cut(item, ":")
		h := Host{name, 1}
		if numbered {
			h.Ranks, err = strconv.Atoi(number)
		}
		if err != nil || h.Ranks < 1 || name == "" || strings.HasPrefix(name, "-") ||
			strings.ContainsAny(name, " \t'\"") {
			return nil, fmt.Errorf("%w: --hosts %q: got %q, want HOST or HOST:RANKS, such as node1:4",
				ErrOption, list, item)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// Total returns the number of ranks on all hosts.
func Total(hosts []Host) (n int) {
	for _, h := range hosts {
		n += h.Ranks
	}
	return n
}
