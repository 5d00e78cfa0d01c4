package watch_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/watch"
)

// A client that stalls is left, with the token or without: no connection stays for ever.
func TestAClientThatStallsIsLeft(t *testing.T) {
	watch.SetPatience(t, 300*time.Millisecond)
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	u, _ := url.Parse(s.URL)
	for name, c := range map[string]struct {
		says  string
		reads bool
	}{
		"connects and says nothing":           {"", true},
		"says half a request":                 {"GET / HTTP/1.1\r\nHost: " + u.Host, true},
		"promises a body":                     {body(u.Host, "/"), true},
		"promises a body, with the token":     {body(u.Host, u.Path), true},
		"asks again and again and reads not":  {strings.Repeat(get(u.Host, "/"), 1<<16), false},
		"asks for the page and reads not":     {strings.Repeat(get(u.Host, u.Path), 1<<14), false},
		"is refused and keeps the connection": {get(u.Host, "/"), true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err = io.WriteString(conn, c.says); c.reads && err == nil {
				_, err = io.Copy(io.Discard, conn)
			} else if err == nil {
				err = gone(conn)
			}
			if n, ok := err.(net.Error); ok && n.Timeout() {
				t.Error("the server keeps it")
			}
		})
	}
}

func get(host, path string) string { return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }

func body(host, path string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000\r\n\r\n", path, host)
}

// gone writes until the other side is gone.
func gone(c net.Conn) error {
	for {
		if _, err := c.Write(make([]byte, 1<<10)); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A page may stay as long as it reads.
func TestAPageThatReadsStays(t *testing.T) {
	watch.SetPatience(t, 100*time.Millisecond)
	s, _ := serve(t, watch.Options{}, counting(new(atomic.Int64)))
	p := follow(t, s)
	for begin := time.Now(); time.Since(begin) < time.Second; {
		next(t, p, "moment")
	}
}
