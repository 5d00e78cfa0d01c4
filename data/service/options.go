package service

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"time"
)

// HostOptions configure [Listen].
type HostOptions struct {
	// Key is the secret shared by data hosts and trainers. It must be set, and should be at least
	// 16 random bytes.
	Key []byte
	// TLS configures the connections: Listen presents its Certificates, and requests client
	// certificates according to ClientAuth. If TLS is nil or has no certificate, Listen creates a
	// self-signed one. A MinVersion below TLS 1.3 is raised to TLS 1.3.
	TLS *tls.Config
	// Unencrypted disables TLS, here and at the trainers, which must set it as well. Both sides
	// still prove that they know the key. But an intermediate machine can read and modify the
	// batches, so it should be used only in trusted networks. It must not be combined with TLS.
	Unencrypted bool
	// Name identifies the data set, for example "imagenet-2012, 224 pixels". It must be the same on
	// all data hosts; [Dial] compares it. If Name is empty, Listen loads the first sample, or for a
	// Stream the first sample of the first part, and Dial compares its hash, which may differ
	// between kinds of processors.
	Name string
	// Cache is the number of bytes of shared memory used to cache batches for other trainers; 0
	// disables the cache. It is useless if each batch is requested once: with one trainer, or if
	// World divides the batches. It must be 0 for a Stream.
	Cache int
	// Ahead is the maximum number of batches per trainer that are made or sent concurrently. 0
	// means the number of workers, but at least 2. It limits the memory that a slow trainer
	// occupies.
	Ahead int
	// Ledger is the path of a file that records the acknowledgements of Dynamic trainers for which
	// this is the first host. A host that restarts with its ledger continues where it stopped.
	// Without a ledger, the trainers of a restarted host fail with [ErrLedger]. A ledger belongs to
	// one data set, seed and batch size. It must be empty for a Stream.
	Ledger string
	// Patience is the time after which a trainer is considered dead: it has not received a
	// requested batch, or a Dynamic trainer has sent nothing. 0 means 30 s.
	Patience time.Duration
}

// Options configure [Dial].
type Options struct {
	// Key is the secret shared by data hosts and trainers. It must be set.
	Key []byte
	// TLS configures the connections. If it is nil, the certificates of data hosts are verified
	// only by Fingerprint and Key. Otherwise Dial verifies them with RootCAs and ServerName, by
	// default the host of each address, and presents Certificates if a data host requests one.
	TLS *tls.Config
	// Fingerprint is the SHA-256 hash of the data hosts' certificate, see [Host.Fingerprint]. If it
	// is not zero, all data hosts must have that certificate.
	Fingerprint [sha256.Size]byte
	// Unencrypted disables TLS. It must equal HostOptions.Unencrypted of the data hosts, and must
	// not be combined with TLS or Fingerprint.
	Unencrypted bool
	// World is the number of trainers that share each epoch, and Rank the number of this one, from
	// 0. With World 0 or 1 the trainer gets all batches of each epoch, independently of other
	// trainers. For a Stream, World and Rank divide the parts as data.Options does.
	Rank, World int
	// Coordinated gives all trainers the same number of steps: if the number of batches is not a
	// multiple of World, the remainder is left out. In step s the trainers together get World
	// consecutive batches, starting at s·World. [Buckets] makes these have similar lengths.
	// Coordinated must not be set for a Stream.
	Coordinated bool
	// Dynamic makes the first data host assign the batches of each epoch to the connected Dynamic
	// trainers, to each as fast as it consumes them. A batch is acknowledged when the loop
	// continues with the next one. Unacknowledged batches are assigned to other trainers when a
	// trainer dies, is partitioned or leaves its loop. All trainers must name the same data host
	// first. Dynamic must not be combined with World, Coordinated or a Stream.
	Dynamic bool
	// Prefetch is the number of batches requested ahead of the consumer; 0 means 4 for each data
	// host. PrefetchBytes limits their total size, estimated from the last batch; 0 means 256 MiB.
	Prefetch      int
	PrefetchBytes int
	// Patience is the time without any data after which the batches of a data host are requested
	// from others, the time to wait for a data host if none is connected, and the time within which
	// one batch must arrive. 0 means 30 s.
	Patience time.Duration
}

var errUnencrypted = fmt.Errorf("%w: Unencrypted leaves out the TLS whose options are given", ErrOptions)

// defaultPatience suffices for a busy machine, and for 100 MB at 30 Mbit/s.
const defaultPatience = 30 * time.Second

const defaultPrefetchBytes = 256 << 20

func (o Options) withDefaults(hosts int) (Options, error) {
	o.World = cmp.Or(o.World, 1)
	o.Prefetch = cmp.Or(o.Prefetch, 4*hosts)
	o.PrefetchBytes = cmp.Or(o.PrefetchBytes, defaultPrefetchBytes)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	switch {
	case hosts == 0:
		return o, fmt.Errorf("%w: no data host address", ErrOptions)
	case len(o.Key) == 0:
		return o, fmt.Errorf("%w: empty Key", ErrOptions)
	case o.Unencrypted && (o.TLS != nil || o.Fingerprint != [sha256.Size]byte{}):
		return o, errUnencrypted
	case o.World < 0 || o.Rank < 0 || o.Rank >= o.World:
		return o, fmt.Errorf("%w: Rank %d: want at least 0 and less than World %d", ErrOptions, o.Rank, o.World)
	case o.Dynamic && (o.World > 1 || o.Coordinated):
		return o, fmt.Errorf("%w: Dynamic with World %d, Coordinated %t: leave them out, because the data host "+
			"assigns the batches",
			ErrOptions,
			o.World, o.Coordinated)
	case o.Prefetch < 0 || o.PrefetchBytes < 0 || o.Patience < 0:
		return o, fmt.Errorf("%w: Prefetch %d, PrefetchBytes %d, Patience %v: want at least 0", ErrOptions,
			o.Prefetch, o.PrefetchBytes, o.Patience)
	case o.Prefetch > mostAsked:
		return o, fmt.Errorf("%w: Prefetch %d: want at most %d", ErrOptions, o.Prefetch, mostAsked)
	}
	return o, nil
}

func (o HostOptions) withDefaults(workers int) (HostOptions, error) {
	o.Ahead = cmp.Or(o.Ahead, max(2, workers))
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	switch {
	case len(o.Key) == 0:
		return o, fmt.Errorf("%w: empty Key", ErrOptions)
	case o.Unencrypted && o.TLS != nil:
		return o, errUnencrypted
	case o.Cache < 0 || o.Ahead < 0 || o.Patience < 0:
		return o, fmt.Errorf("%w: Cache %d, Ahead %d, Patience %v: want at least 0", ErrOptions, o.Cache,
			o.Ahead, o.Patience)
	}
	return o, nil
}
