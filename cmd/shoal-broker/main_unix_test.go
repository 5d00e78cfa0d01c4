//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/test/testutil"
)

// mainVar has the test binary be the program.
const mainVar = "SHOAL_TEST_BROKER_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVar) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run starts the program and returns it with the URLs that it prints.
func run(t *testing.T, args ...string) (c *exec.Cmd, urls string) {
	t.Helper()
	c = exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), mainVar+"=1")
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.Wait()
		t.Fatalf("it prints %q, %v\n%s", line, err, errs.String())
	}
	return c, strings.TrimSpace(line)
}

// open connects and opens a queue, which takes a cluster a while.
func open(t *testing.T, ctx context.Context, urls string) (*nats.Conn, *nats.Queue[int]) {
	t.Helper()
	var c *nats.Conn
	var q *nats.Queue[int]
	testutil.EventuallyNoError(t, func() (err error) {
		if c, err = nats.Connect(ctx, urls, nats.Options{}); err != nil {
			return err
		}
		if q, err = nats.OpenQueue[int](ctx, c, "test", nats.QueueOptions{}); err != nil {
			c.Close()
		}
		return err
	})
	return c, q
}

// ended wants the program to end by itself with status 0.
func ended(t *testing.T, c *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after %v: %v", s, err)
	}
}

func TestBroker_KeepsItsDataWhenItIsStopped(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	for i, s := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGKILL, syscall.SIGTERM} {
		c, url := run(t, "-dir", dir, "-port", "0")
		conn, q := open(t, ctx, url)
		if n, err := q.Len(ctx); n != i || err != nil {
			t.Errorf("start %d: %d values, %v", i, n, err)
		}
		if err := q.Put(ctx, i); err != nil {
			t.Error(err)
		}
		q.Close()
		conn.Close()
		if s == syscall.SIGKILL {
			c.Process.Kill()
			c.Wait()
			continue
		}
		ended(t, c, s)
	}
}

// Clients are verified over TLS only, so a CA alone must not count as credentials.
func TestBroker_RefusesHalfOfTLS(t *testing.T) {
	for _, args := range [][]string{
		{"-host", "0.0.0.0", "-ca", "ca.pem"}, {"-cert", "cert.pem"}, {"-key", "key.pem"}, {"-host", "0.0.0.0"},
	} {
		c := exec.CommandContext(t.Context(), os.Args[0], append(args, "-dir", t.TempDir(), "-port", "0")...)
		c.Env = append(os.Environ(), mainVar+"=1")
		c.Stdin = strings.NewReader("")
		timer := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
		out, err := c.CombinedOutput()
		timer.Stop()
		if err == nil || c.ProcessState.ExitCode() < 1 || !strings.Contains(string(out), "set") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// A node that exits before it has sent its URL sends it after a later start.
func TestRunNode_ReportsWhetherItSentTheURL(t *testing.T) {
	urls := make(chan string, 1)
	for _, tt := range []struct {
		script string
		sent   bool
	}{{"exit 1", false}, {"echo nats://here; exit 1", true}} {
		sent, err := runNode(t.Context(), "/bin/sh", []string{"-c", tt.script}, urls)
		if sent != tt.sent || len(urls) == 1 != tt.sent || err == nil {
			t.Errorf("%s: sent %v, %d URLs, error %v", tt.script, sent, len(urls), err)
		}
	}
}

// The nodes end with the program that started them, also when that is killed.
func TestBroker_ThreeNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, kill := range []bool{false, true} {
		c, urls := run(t, "-dir", t.TempDir(), "-port", "0", "-nodes", "3")
		if strings.Count(urls, ",") != 2 {
			t.Fatalf("%q", urls)
		}
		if !kill {
			conn, q := open(t, ctx, urls)
			if err := q.Put(ctx, 1); err != nil {
				t.Error(err)
			}
			if v, err := q.Get(ctx); v != 1 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			q.Close()
			conn.Close()
			ended(t, c, os.Interrupt)
		} else {
			c.Process.Kill()
			c.Wait()
		}
		testutil.Eventually(t, func() bool {
			conn, err := nats.Connect(ctx, urls, nats.Options{Timeout: time.Second})
			if err == nil {
				conn.Close()
			}
			return errors.Is(err, nats.ErrUnreachable)
		}, "nodes outlive the program")
	}
}

func TestBroker_RefusesToBeOpenToAll(t *testing.T) {
	for _, args := range [][]string{{"-host", "0.0.0.0"}, {"-nodes", "2"}, {"-cert", "none"}, {"-password-file", "none"},
		{"-operator", "main.go"}, {"-operator", "none", "-accounts", "none"},
		{"-operator", "main.go", "-accounts", "main.go"}} {
		c := exec.Command(os.Args[0], append(args, "-dir", t.TempDir())...)
		c.Env = append(os.Environ(), mainVar+"=1")
		out, err := c.CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); !ok || !strings.Contains(string(out), "shoal-broker: ") {
			t.Errorf("%v: %v %s", args, err, out)
		}
	}
}
