package browser_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestMain runs the tests in a network namespace of their own where the kernel permits it, since a
// page lists every program of its namespace, and other programs may start and end meanwhile. It
// also runs as the host that a page joins.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SHOAL_FAR"); dir != "" {
		if err := far(dir); err != nil {
			fmt.Fprintln(os.Stderr, "another machine:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("SHOAL_OWN_NETWORK") != "" {
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ip link set lo up: %v: %s", err, out)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	c := exec.Command("/proc/self/exe", os.Args[1:]...)
	c.Env = append(os.Environ(), "SHOAL_OWN_NETWORK=1")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = ownNetwork(0)
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread() // the signal is sent when the thread ends
	switch err := c.Start(); {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC):
		os.Exit(m.Run())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c.Wait()
	os.Exit(max(c.ProcessState.ExitCode(), -c.ProcessState.ExitCode())) // -1 if a signal ended it
}

// ownNetwork returns the attributes of a process that is root in a user and network namespace of
// its own, and in a new namespace for each of the other clone flags.
func ownNetwork(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | flags,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
}

// far has a program and a shoal watch in a network and with a name of its own. It prints the URL,
// and passes connections of a socket in dir on to it.
func far(dir string) error {
	if err := syscall.Sethostname([]byte("node1")); err != nil {
		return err
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	var line string
	for _, args := range [][]string{{"jam"}, {"shoal-watch", "-every", "200ms"}} {
		c := exec.Command(filepath.Join(dir, args[0]), args[1:]...)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		ends = append(ends, func() { c.Process.Signal(os.Interrupt); c.Wait() })
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			return fmt.Errorf("%s has printed nothing", args[0])
		}
		line = lines.Text()
	}
	u, err := url.Parse(line)
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", filepath.Join(dir, "far"))
	if err != nil {
		return err
	}
	go pass(l, "tcp", u.Host)
	fmt.Println(u.Path)
	_, err = io.Copy(io.Discard, os.Stdin) // until the test closes it
	return err
}

// pass passes the connections of a listener on, until it is closed, and ends them then.
func pass(l net.Listener, network, address string) {
	var all []net.Conn
	var passing sync.WaitGroup
	for {
		a, err := l.Accept()
		if err != nil {
			break
		}
		b, err := net.Dial(network, address)
		if err != nil {
			a.Close()
			continue
		}
		all = append(all, a, b)
		for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
			passing.Go(func() { io.Copy(way[0], way[1]); way[0].Close() })
		}
	}
	for _, c := range all {
		c.Close()
	}
	passing.Wait()
}

// anotherMachine runs far, or skips the test where the kernel does not let this user have a
// network.
func anotherMachine(t *testing.T, dir string) (path string) {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "SHOAL_FAR="+dir)
	c.Stderr = os.Stderr
	c.SysProcAttr = ownNetwork(syscall.CLONE_NEWUTS)
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("this user may have no network of its own: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the other machine has printed nothing")
	}
	return lines.Text()
}

func TestPage_OfTwoHosts(t *testing.T) {
	p := open(t)
	dir := build(t, "./cmd/shoal-watch", "./cmd/internal/watch/testdata/jam", "./cmd/internal/watch/testdata/feed")
	path := anotherMachine(t, dir)
	listen := func(at string) net.Listener {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		go pass(l, "unix", filepath.Join(dir, "far"))
		return l
	}
	line := listen("127.0.0.1:0")
	defer func() { line.Close() }()
	start(t, filepath.Join(dir, "feed"))
	at, _ := start(t, filepath.Join(dir, "shoal-watch"), "-every", "200ms", "-join", "http://"+line.Addr().String()+path)
	p.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(at))
	row := func(table int, of string) string {
		return fmt.Sprintf("[...document.querySelectorAll('#hosts .table')[%d].querySelectorAll('tbody tr')].find(r => r.innerText.includes('%s'))", table, of)
	}
	const notice = "document.querySelector('#notice').textContent"
	p.step("both", func() {
		p.holds(row(0, ", here") + "?.innerText.includes('live') && " + row(0, "node1") + "?.innerText.includes('live')")
		p.holds(row(1, "feed") + "?.innerText.includes(', here') && " + row(1, "jam") + "?.innerText.includes('node1')")
		p.holds(row(1, "jam") + ".innerText.includes('deadlock?')")
		p.holds("document.querySelector('#nav a[href=\"#hosts\"]').hasAttribute('data-alarm')")
		p.holds("[...document.querySelectorAll('#program optgroup')].map(g => g.label).includes('node1')")
	})
	p.step("a program of the other", func() {
		p.value(row(1, "jam") + ".querySelector('button').click()")
		p.holds("document.title.startsWith('jam (') && document.title.includes(' on node1 ')")
		p.holds(notice + ".startsWith('Suspected deadlock: fork ')")
		holds := "[...document.querySelectorAll('#processes tbody tr')].find(r => r.innerText.includes('forget 0'))?.children[5].textContent"
		for range 3 { // numbers move
			p.holds(holds + " !== '" + p.value(holds) + "'")
		}
		p.holds("document.querySelector('#memory canvas').width > 0")
	})
	p.step("keys", func() {
		p.press("h")
		p.holds("document.activeElement.id === 'hosts'")
		p.press("1")
		p.holds("document.activeElement.id === 'overview'")
		p.press("[")
		p.holds("!document.title.includes(' on node1 ')")
		p.press("]")
		p.holds("document.title.includes(' on node1 ')")
	})
	pictures := func(name string) {
		p.value("document.activeElement.blur()")
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 400} {
				p.show(width, 1180, scheme)
				p.holds("scrollTo(0, 0) || scrollY === 0")
				p.picture(fmt.Sprintf("%s-page-%s-%d", name, scheme, width), "")
				p.picture(fmt.Sprintf("%s-%s-%d", name, scheme, width), "#hosts")
			}
		}
		p.show(1280, 900, "light")
	}
	pictures("hosts")
	p.step("gone and back", func() {
		address := line.Addr().String()
		line.Close()
		p.holds(row(0, "node1") + ".innerText.includes('no answer since ')")
		p.holds("document.querySelector('#hosts .problem').textContent.startsWith('node1: ')")
		p.holds(notice + ".startsWith('node1 has not answered since ')")
		p.holds("document.querySelector('#program').selectedOptions[0].textContent.endsWith(', no answer')")
		p.holds("document.querySelector('#panels').classList.contains('over')")
		p.holds("[...document.querySelectorAll('#processes tbody tr')].some(r => r.innerText.includes('forget 0'))")
		pictures("hosts-gone")
		line = listen(address)
		p.holds(row(0, "node1") + ".innerText.includes('live') && " + row(1, "jam") + ".innerText.includes('deadlock?')")
		p.holds("!document.querySelector('#panels').classList.contains('over')")
	})
	p.quiet()
}

// What a joined host says cannot harm the page.
func TestPage_OfAHostThatLies(t *testing.T) {
	p := open(t)
	evil := `<img src=x onerror=alert(1)>`
	domain := `{"address":"@shoal/0/8-b","version":9,"limit":-1,"committed":9000000000000000000,"bytes":-5,"blocks":3,"names":["` + evil + `","__proto__"],` +
		`"processes":[{"pid":8,"name":"` + evil + `","holds":-7,"cpus":1e308},{"pid":8},{"pid":-1,"parent":-1},{"pid":9,"parent":10},{"pid":10,"parent":9}],` +
		`"bound":{"__proto__":{"blocks":["` + evil + `"]}},"summary":{"by_kind":{"__proto__":{"blocks":1,"bytes":-9},"` + evil + `":{"blocks":9}},` +
		`"by_size":[{"size":-1,"blocks":1}],"by_site":[{"stack":"` + evil + `\nx","blocks":1}],"by_shape":[{"dtype":"` + evil + `","blocks":1}],` +
		`"largest":[{"stack":"a"},{"block":"` + evil + `","age_seconds":-1e300}]},` +
		`"queues":[{"names":["__proto__","` + evil + `"],"value":-1e308,"depth":-1},{"capacity":-3}],"locks":[{},{"kind":"semaphore","permits":-1}],` +
		`"loaders":[{"step":-1,"window":-9,"workers":2,"verdict":"` + evil + `","tracks":[{"working":[-1,9000000000000000000],"idle":[1]},{}],` +
		`"batches":[{},{"asked":-1,"ready":9000000000000000000}],"consumer":{"state":"` + evil + `","working":[1]}}],` +
		`"waits":[{"pid":8,"for":"` + evil + `","on":[8,9,9]},{"pid":9}],"deadlocks":[{},{"waits":[{"pid":8}]}]}`
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: hello\ndata: {\"name\":%q,\"place\":\"there\",\"every\":50}\n\n", evil)
		for i := 1; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "event: moment\ndata: {\"at\":%d,\"every\":-1,\"machine\":{\"utilisation\":1e300},\"domains\":[%s,{\"address\":\"@shoal/0/9-%d\"}]}\n\n", i, domain, i)
			http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	}))
	defer other.Close()
	defer other.CloseClientConnections()
	dir := build(t, "./cmd/shoal-watch")
	at, _ := start(t, filepath.Join(dir, "shoal-watch"), "-every", "100ms", "-join", other.URL+"/TOKEN/", "-join", "http://127.0.0.1:1/TOKEN/")
	p.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(at))
	option := "[...document.querySelectorAll('#program option')].find(o => o.textContent.includes('onerror'))"
	p.holds(option)
	p.value("(() => { const s = document.querySelector('#program'); s.value = " + option + ".value; s.dispatchEvent(new Event('change')) })()")
	p.holds("document.querySelector('#hosts').innerText.includes('<img src=x')")
	p.holds("document.querySelector('#hosts').innerText.includes('cannot be joined')") // and the other one goes on
	for _, panel := range []string{"processes", "queues", "locks", "blocks", "names", "loaders", "waits"} {
		p.holds("!document.querySelector('#" + panel + "').hidden")
	}
	p.holds("document.querySelector('#names').innerText.includes('<img src=x') && !document.querySelector('main img')")
	p.holds("({}).blocks === undefined && ({}).bytes === undefined")
	ends := "[...document.querySelectorAll('#program option')].filter(o => o.textContent.endsWith(', ended')).length"
	p.holds(ends + " > 3 && " + ends + " < 7") // programs that come and go are not kept for ever
	for _, width := range []int64{1280, 400} {
		p.show(width, 1180, "light")
	}
	p.holds("document.querySelector('#status').dataset.state === 'live'")
	if strings.Contains(p.value("document.body.innerText"), "TOKEN") {
		t.Error("the page tells the token of a joined host")
	}
	p.quiet()
}
