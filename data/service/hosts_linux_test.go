package service_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestHosts_CutOff cuts machines off, which scripts/hosts makes: network namespaces with addresses
// of their own.
func TestHosts_CutOff(t *testing.T) {
	if os.Getenv("SHOAL_HOSTS") == "" {
		again := exec.CommandContext(t.Context(), "../../scripts/hosts", "3", os.Args[0],
			"-test.run=^TestHosts_CutOff$",
			"-test.v")
		out, err := again.CombinedOutput()
		if code := (*exec.ExitError)(nil); errors.As(err, &code) && code.ExitCode() == 77 {
			t.Skipf("%s", out)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS: TestHosts_CutOff") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Run("data_host", func(t *testing.T) { dataHostIsCutOff(t, false) })
	t.Run("data_host_of_a_stream", func(t *testing.T) { dataHostIsCutOff(t, true) })
	t.Run("dynamic_trainer", trainerIsCutOff)
	t.Run("packets_are_lost", packetsAreLost)
}

// packetsAreLost has a data host lose packets, and be late with others.
func packetsAreLost(t *testing.T) {
	const samples = 4000
	want := local(t, numbers{samples, 0, -1}, 1)
	var addrs []string
	for _, host := range []string{"h1", "h2"} {
		p := startOn(t, host, job{Role: "host", Samples: samples, Seed: 7, Addr: host + ":7072"})
		addrs = append(addrs, p.addr)
	}
	t.Logf("by %s", on(t, "h1", os.Getenv("SHOAL_HOSTS_AGENT")+" --lossy"))
	defer on(t, "h1", os.Getenv("SHOAL_HOSTS_AGENT")+" --lossless")
	got := epoch(t, dial(t, service.Options{Patience: time.Minute}, addrs...).Batches(t.Context()), nil)
	once(t, samples, got)
	if !same(got, want[0]) {
		t.Errorf("%v, want %v", got, want[0])
	}
	if n := on(t, "h1", os.Getenv("SHOAL_HOSTS_AGENT")+" --lost"); n == "0" {
		t.Error("no packet is lost")
	} else {
		t.Logf("%s packets were lost", n)
	}
}

// trainerIsCutOff cuts a Dynamic trainer off. What it had goes to the others.
func trainerIsCutOff(t *testing.T) {
	const samples = 240
	file := filepath.Join(t.TempDir(), "ledger")
	h := startOn(t, "h1", job{Role: "host", Samples: samples, Seed: 7, Addr: "h1:7071", Ledger: file,
		Patience: 5 * time.Second})
	j := job{Role: "trainer", Hosts: []string{h.addr}, Epochs: 1, Dynamic: true, Sleep: 2 * time.Millisecond,
		Patience: 5 * time.Second}
	slow := j
	slow.Sleep = time.Second // so the epoch does not end before it is cut off
	text, err := json.Marshal(slow)
	if err != nil {
		t.Fatal(err)
	}
	far := begin(t, exec.Command(os.Getenv("SHOAL_HOSTS_AGENT"), "h2", "exec "+os.Args[0]), string(text), false)
	traces := make(chan trace)
	go func() {
		traces <- follow(far, func(n int) {
			if n == 1 {
				on(t, "h2", "ip link set eth0 down")
			}
		})
	}()
	all := trainers(t, 2, j, func(*program, int, int) bool { return false })
	tr := <-traces
	tr.killed = true
	if err := far.cmd.Wait(); err == nil {
		t.Error("the trainer that was cut off has no error")
	}
	far.ended = true
	on(t, "h2", "ip link set eth0 up")
	audit(t, file, local(t, numbers{samples, 0, -1}, 1), append(all, tr))
}

// dataHostIsCutOff cuts a data host off in the middle of an epoch. The trainer gets each sample
// once, and the host is connected again when the cable is back.
func dataHostIsCutOff(t *testing.T, stream bool) {
	const samples = 400
	set, port := numbers{samples, 0, -1}, ":7070"
	want := local(t, set, 2)
	if stream {
		want, port = localStream(t, series{set}, 2, nil), ":7073"
	}
	var addrs []string
	for _, host := range []string{"h1", "h2"} {
		p := startOn(t, host, job{Role: "host", Samples: samples, Seed: 7, Sleep: time.Millisecond, Addr: host + port,
			Stream: stream})
		addrs = append(addrs, p.addr)
	}
	l := dial(t, service.Options{Patience: time.Second}, addrs...)
	got := epoch(t, l.Batches(t.Context()), func(step int) {
		if step == 20 {
			on(t, "h2", "ip link set eth0 down")
		}
	})
	once(t, samples, got)
	if !same(got, want[0]) {
		t.Errorf("%v, want %v", got, want[0])
	}
	if s := l.Stats().Hosts; s[1].Losses != 1 || s[1].Batches == 0 || s[1].Connected || s[0].Losses != 0 {
		t.Errorf("%+v", s)
	}
	on(t, "h2", "ip link set eth0 up")
	testutil.Eventually(t, func() bool { return l.Stats().Hosts[1].Connected }, "the second host is not connected")
	if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want[1]) {
		t.Errorf("%v, want %v", got, want[1])
	}
}

// on runs a command on a host, and returns what it prints. What the kernel does not permit is
// skipped.
func on(t *testing.T, host, command string) string {
	t.Helper()
	out, err := exec.Command(os.Getenv("SHOAL_HOSTS_AGENT"), host, command).CombinedOutput()
	if code := (*exec.ExitError)(nil); errors.As(err, &code) && code.ExitCode() == 77 {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Fatalf("%s on %s: %v\n%s", command, host, err, out)
	}
	return strings.TrimSpace(string(out))
}

// startOn starts a data host on another machine.
func startOn(t *testing.T, host string, j job) *program {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, exec.Command(os.Getenv("SHOAL_HOSTS_AGENT"), host, "exec "+os.Args[0]), string(text), true)
}
