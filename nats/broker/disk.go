package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Full disks] If a server cannot write a value to its disk, it does not answer the sender,
// and accepts no more values of that stream until it is restarted, even if space is freed. A node
// therefore monitors its disk. When less than Options.Reserve bytes are free, it refuses values,
// with the same error as for an account over its limit. It still delivers stored values, which
// frees space. It hands leadership of its streams and consumers to other nodes of the cluster,
// which may have space. If a write has failed nevertheless, it restarts JetStream once there is
// space.

const (
	defaultReserve = 256 << 20
	reserveShare   = 8 // the default reserve is at most free space/reserveShare
	diskPause      = 100 * time.Millisecond
	writesPause    = 2 * time.Second // between two checks for failed writes
	mostPause      = 5 * time.Minute // maximum pause after checks that found some
)

// A disk monitors the disk that contains the data of a node, on a goroutine of its own.
type disk struct {
	s        *server.Server
	accounts []account
	dir      *os.File
	reserve  int64
	config   server.JetStreamConfig
	full     atomic.Bool
	told     func(string)

	end  chan struct{}
	done sync.WaitGroup
}

// watchDisk starts monitoring. The caller must close the result before it stops the server. It
// returns nil without an error if the system does not report the free space.
func watchDisk(s *server.Server, o Options) (*disk, error) {
	accounts, err := o.storageAccounts(s)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	dir, err := os.Open(s.StoreDir())
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	room, err := sys.FileSystemRoom(dir)
	if err != nil || room < 0 {
		return nil, dir.Close()
	}
	d := &disk{s: s, accounts: accounts, dir: dir, reserve: o.Reserve, told: o.Told, end: make(chan struct{})}
	if d.reserve == 0 {
		d.reserve = min(defaultReserve, room/reserveShare)
	}
	d.config = *s.JetStreamConfig()
	d.config.StoreDir = filepath.Dir(d.config.StoreDir) // the server appends its own directory
	d.done.Go(d.monitorSpace)
	return d, nil
}

func (d *disk) monitorSpace() {
	t := time.NewTicker(diskPause)
	defer t.Stop()
	var yielded time.Time
	for looked, pause := time.Now(), writesPause; ; {
		room, err := sys.FileSystemRoom(d.dir)
		enough := err == nil && room >= d.reserve+d.reserve/4
		switch full := d.full.Load(); {
		case !full && err == nil && room < d.reserve:
			d.refuseValues(room)
			yielded, pause = time.Now(), writesPause
			d.transferLeadership()
		case full && enough:
			d.restartJetStream()
			d.admitValues(room)
			looked, pause = time.Now(), writesPause
		case full && time.Since(yielded) >= pause: // the other nodes may have elected it again
			if d.transferLeadership() {
				pause = min(2*pause, mostPause) // the other nodes may be full too
			}
			yielded = time.Now()
		case enough && time.Since(looked) >= pause:
			if d.restartJetStream() {
				pause = min(2*pause, mostPause)
			} else {
				pause = writesPause
			}
			looked = time.Now()
		}
		select {
		case <-d.end:
			return
		case <-t.C:
		}
	}
}

// refuseValues makes the server refuse new values of all accounts, and marks d as full. room is
// the number of free bytes, which is logged. After an error, which is logged too, refuseValues
// continues with the other accounts.
func (d *disk) refuseValues(room int64) {
	for _, a := range d.accounts {
		if err := a.refuseValues(); err != nil {
			d.logf("cannot make account %s refuse values: %v", a.Name, err)
		}
	}
	d.full.Store(true)
	d.logf("%s has %d MiB free, want at least %d MiB: refusing new values until there is more free space",
		d.s.StoreDir(), room>>20, d.reserve>>20)
}

// transferLeadership hands leadership of the streams and consumers that this node leads to other
// nodes of the cluster. It returns false if there were none or the server cannot list them.
// Errors of the transfers are logged.
func (d *disk) transferLeadership() (some bool) {
	if !d.s.JetStreamIsClustered() {
		return false
	}
	of, err := d.s.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true})
	if err != nil {
		return false
	}
	leads := func(c *server.ClusterInfo) bool { return c != nil && c.Leader == d.s.Name() && len(c.Replicas) > 0 }
	for _, a := range of.AccountDetails {
		for _, s := range a.Streams {
			var failed error
			if leads(s.Cluster) {
				some = true
				failed = d.s.JetStreamStepdownStream(a.Id, s.Name)
			}
			for _, c := range s.Consumer {
				if leads(c.Cluster) {
					some = true
					failed = errors.Join(failed, d.s.JetStreamStepdownConsumer(a.Id, s.Name, c.Name))
				}
			}
			if failed != nil {
				d.logf("cannot transfer leadership of %s: %v", s.Name, failed)
			}
		}
	}
	return some
}

// admitValues reverses refuseValues. room is the number of free bytes, which is logged. After the
// first error, which is logged too, admitValues stops, and d still counts as full.
func (d *disk) admitValues(room int64) {
	for _, a := range d.accounts {
		if err := a.admitValues(d.s); err != nil {
			d.logf("cannot make account %s accept values: %v", a.Name, err)
			return
		}
	}
	d.full.Store(false)
	d.logf("%s has %d MiB free: accepting values again", d.s.StoreDir(), room>>20)
}

// restartJetStream restarts JetStream if it has stopped, or if a write of a stream or consumer has
// failed, for lack of space. It reports whether it tried to; errors are logged.
func (d *disk) restartJetStream() bool {
	why := "JetStream has stopped"
	if d.s.JetStreamEnabled() {
		why = d.writeFailure()
	}
	if why == "" {
		return false
	}
	d.logf("%s: restarting JetStream", why)
	if err := d.s.ShutdownJetStream(); err != nil {
		d.logf("stop JetStream: %v", err)
	}
	if err := d.s.EnableJetStream(&d.config); err != nil {
		d.logf("start JetStream: %v", err)
	}
	return true
}

// writeFailure returns the text of the error of a write that has failed for lack of space, or
// "".
func (d *disk) writeFailure() string {
	health := d.s.Healthz(&server.HealthzOptions{Details: true})
	for _, e := range health.Errors {
		// on a full disk, the first error causes others
		if strings.Contains(e.Error, "no space left") || d.full.Load() && strings.Contains(e.Error, "write error") {
			return e.Error
		}
	}
	return ""
}

func (d *disk) logf(format string, args ...any) {
	if d.told != nil {
		goexit.Isolate("broker: Options.Told", func() { d.told(fmt.Sprintf(format, args...)) })
	}
}

func (d *disk) close() error {
	if d == nil {
		return nil
	}
	close(d.end)
	d.done.Wait()
	return d.dir.Close()
}
