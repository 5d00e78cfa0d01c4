package service_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data/service"
)

// TestHosts_CutOff cuts machines off, which scripts/hosts makes: network namespaces with addresses
// of their own.
func TestHosts_CutOff(t *testing.T) {
	if os.Getenv("SHOAL_HOSTS") == "" {
		again := exec.CommandContext(t.Context(), "../../scripts/hosts", "3", os.Args[0], "-test.run=^TestHosts_CutOff$",
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
	t.Run("data_host", dataHostIsCutOff)
}

// dataHostIsCutOff cuts a data host off in the middle of an epoch. The trainer gets each sample
// once, and the host is connected again when the cable is back.
func dataHostIsCutOff(t *testing.T) {
	const samples = 400
	want := local(t, numbers{samples, 0, -1}, 2)
	var addrs []string
	for _, host := range []string{"h1", "h2"} {
		p := startOn(t, host, job{Role: "host", Samples: samples, Seed: 7, Sleep: time.Millisecond, Addr: host + ":7070"})
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
	for !l.Stats().Hosts[1].Connected {
		time.Sleep(10 * time.Millisecond)
	}
	if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want[1]) {
		t.Errorf("%v, want %v", got, want[1])
	}
}

// on runs a command on a host.
func on(t *testing.T, host, command string) {
	t.Helper()
	if out, err := exec.Command(os.Getenv("SHOAL_HOSTS_AGENT"), host, command).CombinedOutput(); err != nil {
		t.Fatalf("%s on %s: %v\n%s", command, host, err, out)
	}
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
