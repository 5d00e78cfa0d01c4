package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// again is how long a node rests that has ended by itself, before it is started again.
const again = time.Second

// supervise runs three nodes of a cluster, each in a process, until ctx ends. A node that dies is
// started again, and gets what it missed from the others.
func (s *settings) supervise(ctx context.Context) error {
	ports, err := s.ports()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	urls := make(chan string, 3)
	for i := range 3 {
		args := s.nodeArgs(i, ports)
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				said := urls
				if n > 0 {
					said = nil // it has been told
				}
				err := node(ctx, self, args, said)
				if ctx.Err() == nil {
					fmt.Fprintf(os.Stderr, "shoal broker: node %d has ended (%v) and is started again\n", i+1, err)
					select {
					case <-ctx.Done():
					case <-time.After(again):
					}
				}
			}
		})
	}
	var list []string
	for len(list) < 3 {
		select {
		case u := <-urls:
			list = append(list, u)
		case <-ctx.Done():
			all.Wait()
			return nil
		}
	}
	slices.Sort(list)
	fmt.Println(strings.Join(list, ","))
	if !s.quiet {
		fmt.Fprintf(os.Stderr, "shoal broker: data in %s, 3 replicas on 3 nodes; interrupt it to stop\n", s.Dir)
	}
	<-ctx.Done()
	all.Wait()
	return nil
}

// ports returns three ports for clients and three for nodes.
func (s *settings) ports() (all [6]int, err error) {
	if s.Port != 0 {
		for i := range 3 {
			all[i], all[i+3] = s.Port+i, s.Port+2000+i
		}
		return all, nil
	}
	for i := range all { // all are held until all are known, so they differ
		l, err := net.Listen("tcp", net.JoinHostPort(s.Host, "0"))
		if err != nil {
			return all, err
		}
		defer l.Close()
		all[i] = l.Addr().(*net.TCPAddr).Port
	}
	return all, nil
}

// nodeArgs are the flags of one node: those of this process, and what differs.
func (s *settings) nodeArgs(i int, ports [6]int) []string {
	var peers []string
	for k := range 3 {
		if k != i {
			peers = append(peers, net.JoinHostPort(s.Host, strconv.Itoa(ports[k+3])))
		}
	}
	return append(slices.Clone(os.Args[1:]), "-nodes", "1", "-quiet", "-name", "node"+strconv.Itoa(i+1),
		"-port", strconv.Itoa(ports[i]), "-cluster-port", strconv.Itoa(ports[i+3]), "-peers", strings.Join(peers, ","),
		"-dir", filepath.Join(s.Dir, strconv.Itoa(i+1)))
}

// node runs one node until it ends, and sends its URL.
func node(ctx context.Context, self string, args []string, urls chan<- string) error {
	c := exec.CommandContext(ctx, self, args...)
	c.Env = append(os.Environ(), lifeline+"=1")
	c.Stderr = os.Stderr
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 20*time.Second
	line, err := c.StdinPipe() // it stays open as long as this process lives
	if err != nil {
		return err
	}
	defer line.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if url, err := bufio.NewReader(out).ReadString('\n'); err == nil && urls != nil {
		urls <- strings.TrimSpace(url)
	}
	return c.Wait()
}
