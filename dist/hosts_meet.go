package dist

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/launch"
)

// hierarchicalKey is the environment variable that selects the algorithm of collective calls: 1
// makes all supported calls hierarchical, 0 none. By default calls of at least hostsBytes are. Only
// rank 0's variable counts. See Note [Hosts].
const hierarchicalKey = "SHOAL_DIST_HIERARCHICAL"

// hostsBytes is the minimum length in bytes of a hierarchical call by default. Longer calls are
// faster that way; see docs/cluster.md.
const hostsBytes = 16 << 20

// The values of hierarchicalKey, as parsed.
const (
	wayMeasured = iota
	wayHosts
	wayLibrary
	wayUnknown
)

// A card is the record that ranks exchange to find the ranks that share memory with them. Its
// first byte is one of the values of hierarchicalKey, such as wayHosts. The job's random name
// follows; all ranks use both as rank 0 has them. The two hashes described below come last.
type card [cardBytes]byte

const (
	cardBytes = 96
	placeAt   = 32 // hash of the machine, user and namespaces
	machineAt = 64 // hash of the machine
)

func newCard() (c card) {
	c[0] = wayMeasured
	if way := os.Getenv(hierarchicalKey); way != "" {
		switch on, err := strconv.ParseBool(way); {
		case err != nil:
			c[0] = wayUnknown
		case on:
			c[0] = wayHosts
		default:
			c[0] = wayLibrary
		}
	}
	copy(c[1:placeAt], rand.Text())
	machine, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	place := fmt.Appendf(nil, "%s %d", machine, os.Getuid())
	for _, space := range []string{"net", "pid"} { // sockets and PIDs are local to these
		name, failed := os.Readlink("/proc/self/ns/" + space)
		err, place = errors.Join(err, failed), append(place, name...)
	}
	if err != nil { // unknown: share with no other rank
		place, machine = []byte(rand.Text()), []byte(rand.Text())
	}
	sum := sha256.Sum256(place)
	copy(c[placeAt:], sum[:])
	sum = sha256.Sum256(machine)
	copy(c[machineAt:], sum[:])
	return c
}

// sortCards groups ranks by the bytes [at, end) of their cards. It returns the ranks of each host
// in ascending order, and the host of each rank.
func sortCards(cards []card, at, end int) (hosts [][]int, of []int) {
	for r, c := range cards {
		host := -1
		for i, ranks := range hosts {
			if bytes.Equal(cards[ranks[0]][at:end], c[at:end]) {
				host = i
			}
		}
		if host < 0 {
			host, hosts = len(hosts), append(hosts, nil)
		}
		hosts[host], of = append(hosts[host], r), append(of, host)
	}
	return hosts, of
}

// setUpHosts sets up hierarchical calls if they are useful. All ranks must call it. how
// describes the setup for the log, and is "" if all calls use the library. If shared memory is
// not possible, rank 0 logs a warning. The error wraps [ErrEngine] if hierarchicalKey has an
// invalid value.
func (g *Group) setUpHosts(ctx context.Context) (how string, err error) {
	c, err := g.beginCall(ctx, "init", "")
	if err != nil {
		return "", err
	}
	defer g.endCall()
	f, mine := g.far, newCard()
	raw := make([]byte, g.size*cardBytes)
	err = g.runMove(ctx, c, func(*vector, *vector) error { return f.comm.AllGather(raw, mine[:]) })
	if err != nil {
		return "", err
	}
	cards := make([]card, g.size)
	for r := range cards {
		copy(cards[r][:], raw[r*cardBytes:])
	}
	h := &hosts{Comm: f.comm, least: hostsBytes}
	h.ranks, h.of = sortCards(cards, placeAt, machineAt)
	switch way := cards[0][0]; {
	case way == wayUnknown:
		return "", fmt.Errorf("%w: %s of rank 0 is %q, want 1 or 0, or unset", ErrEngine, hierarchicalKey,
			os.Getenv(hierarchicalKey))
	case way == wayLibrary || way == wayMeasured && len(h.ranks) == 1:
		return "", nil
	case mostRanks(h.ranks) == 1:
		if machines, _ := sortCards(cards, machineAt, cardBytes); len(machines) < g.size {
			g.logUnshared("ranks of one machine run in several containers or as several users")
		}
		return "", nil
	case way == wayHosts:
		h.least = 0
	}
	local, why := g.createHostGroup(ctx, h, string(cards[0][1:placeAt]))
	refused, err := g.gatherReasons(ctx, c, why)
	if err == nil && refused != "" {
		g.logUnshared(refused)
	}
	if err != nil || refused != "" {
		return "", closeGroup(local, err)
	}
	leads := h.ranks[h.hostIndex()][0] == g.Rank()
	err = g.runMove(ctx, c, func(*vector, *vector) (err error) {
		h.leaders, err = f.comm.Split(leads)
		return err
	})
	if err != nil {
		return "", closeGroup(local, err)
	}
	h.local = near{local}
	f.comm, f.hosts = h, h
	return fmt.Sprintf(", hierarchical, hosts: %d", len(h.ranks)), nil
}

// logUnshared logs, in rank 0 only, that calls use only the library, and why.
func (g *Group) logUnshared(why string) {
	if g.Rank() == 0 {
		slog.Warn("dist.Init: ranks of one host cannot share memory; sending all data through the MPI library",
			"reason", why)
	}
}

// createHostGroup creates the shared-memory group of this host's ranks. If one of them fails, all
// fail. It returns nil if this rank is alone on its host. The caller must close the group, also if
// there is an error.
func (g *Group) createHostGroup(ctx context.Context, h *hosts, job string) (*Group, error) {
	ranks := h.ranks[h.hostIndex()]
	l := launch.Launch{Size: len(ranks), Job: job}
	for ranks[l.Rank] != g.Rank() {
		l.Rank++
	}
	if l.Size == 1 {
		return nil, nil
	}
	type joined struct {
		local *Group
		err   error
	}
	attempt, give := context.WithCancelCause(ctx)
	defer give(nil)
	done := make(chan joined, 1)
	go func() {
		local, err := initNear(attempt, l)
		done <- joined{local, err}
	}()
	var mine joined
	f := g.far
	others := l.Size - 1
	for n, told := (nap{}), false; others > 0 || !told; n.backOff() {
		select {
		case mine = <-done:
			told = true
			for _, r := range ranks {
				if r == g.Rank() {
					continue
				}
				s, err := f.comm.Send(r, tagMet, []byte{boolByte(mine.err == nil)})
				if err != nil {
					return mine.local, err
				}
				f.driveSend(s, func() {})
			}
		default:
		}
		from, _, ok, err := f.comm.Probe(tagMet)
		if err != nil || told && ctx.Err() != nil {
			return mine.local, errors.Join(mine.err, err, ctx.Err())
		}
		if !ok {
			continue
		}
		met := make([]byte, 1)
		if err := f.comm.Receive(from, tagMet, met); err != nil {
			return mine.local, err
		}
		if others--; met[0] == 0 {
			give(fmt.Errorf("rank %d%s", from, cannot))
		}
	}
	return mine.local, mine.err
}

// cannot is the suffix of errors that another rank caused; gatherReasons skips them.
const cannot = " cannot join"

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// gatherReasons returns the reasons why ranks cannot share memory, at most three, or "" if all
// can. All ranks must call it, and get the same text. why is this rank's own error; it may be
// nil. The error is the failure of the exchange.
func (g *Group) gatherReasons(ctx context.Context, c *call, why error) (string, error) {
	mine, all := make([]byte, headBytes), make([]byte, g.size*headBytes)
	if why != nil {
		copy(mine, why.Error())
	}
	err := g.runMove(ctx, c, func(*vector, *vector) error { return g.far.comm.AllGather(all, mine) })
	if err != nil {
		return "", err
	}
	var reasons []string
	for r := range g.size {
		text := string(bytes.TrimRight(all[r*headBytes:][:headBytes], "\x00"))
		if text != "" && !strings.HasSuffix(text, cannot) && len(reasons) < 3 {
			reasons = append(reasons, fmt.Sprintf("rank %d: %s", r, text))
		}
	}
	return strings.Join(reasons, "; "), nil
}
