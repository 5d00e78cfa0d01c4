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

// again is the delay before a node that exited is restarted.
const again = time.Second

// superviseNodes runs the three nodes of a cluster, each in its own process, until ctx is done,
// when it waits for them and returns nil. Once all nodes have started, it prints their URLs,
// separated by commas, on standard output. A node that exits is restarted after [again] and
// catches up from the other nodes.
func (s *settings) superviseNodes(ctx context.Context) error {
	ports, err := s.choosePorts()
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
			unsent := urls // nil once the node has sent its URL, which does not change
			for ctx.Err() == nil {
				sent, err := runNode(ctx, self, args, unsent)
				if sent {
					unsent = nil
				}
				if ctx.Err() == nil {
					fmt.Fprintf(os.Stderr, "shoal broker: node %d ended (%v): restarting it\n", i+1, err)
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
		fmt.Fprintf(os.Stderr, "shoal broker: data in %s, 3 replicas on 3 nodes; press Ctrl-C to stop\n", s.Dir)
	}
	<-ctx.Done()
	all.Wait()
	return nil
}

// choosePorts returns the client ports of the three nodes, followed by their cluster ports. The
// client ports are -port and the next two, and each cluster port is 2000 higher. If -port is 0, all
// six are free ports, and choosePorts returns an error if it cannot find them. It does not check
// other ports.
func (s *settings) choosePorts() (all [6]int, err error) {
	if s.Port != 0 {
		for i := range 3 {
			all[i], all[i+3] = s.Port+i, s.Port+2000+i
		}
		return all, nil
	}
	for i := range all { // keep every listener open until all ports are chosen, so that they differ
		l, err := net.Listen("tcp", net.JoinHostPort(s.Host, "0"))
		if err != nil {
			return all, err
		}
		defer l.Close()
		all[i] = l.Addr().(*net.TCPAddr).Port
	}
	return all, nil
}

// nodeArgs returns the arguments of node i, which counts from 0: the arguments of this process
// followed by the flags that are specific to the node. The later flag wins. ports is the result
// of choosePorts.
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

// runNode runs one node process until it exits. It sends the node's URL to urls unless urls is nil,
// and reports whether it did: a node may exit before it has started. The channel must have room for
// the URL.
func runNode(ctx context.Context, self string, args []string, urls chan<- string) (sent bool, err error) {
	c := exec.CommandContext(ctx, self, args...)
	c.Env = append(os.Environ(), lifeline+"=1")
	c.Stderr = os.Stderr
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 20*time.Second
	line, err := c.StdinPipe() // stays open while this process lives, see lifeline
	if err != nil {
		return false, err
	}
	defer line.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := c.Start(); err != nil {
		return false, err
	}
	if url, err := bufio.NewReader(out).ReadString('\n'); err == nil && urls != nil {
		urls <- strings.TrimSpace(url)
		sent = true
	}
	return sent, c.Wait()
}
