package service

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"time"
)

// HostOptions configure Listen.
type HostOptions struct {
	// Key is the secret that data hosts and trainers know: 16 random bytes or more.
	Key []byte
	// TLS configures the connections: Listen has the Certificates in it, and asks trainers for one
	// by ClientAuth. Without any, and if TLS is nil, Listen makes a new self-signed certificate. A
	// MinVersion below TLS 1.3 is raised to TLS 1.3.
	TLS *tls.Config
	// Unencrypted leaves TLS out, here and at the trainers. Both sides still prove the key. But a
	// machine between them can read and change the batches, so it is for networks that only trusted
	// machines are on. It is an error together with TLS.
	Unencrypted bool
	// Name is what all data hosts call the data set, such as "imagenet-2012, 224 pixels". Dial
	// compares the names. Without a Name, Listen loads the first sample, or that of the first part
	// of a Stream, and Dial compares its hash, which may differ between processors of different
	// kinds.
	Name string
	// Cache is how many bytes of shared memory keep batches that were made, for other trainers that
	// ask for the same ones. 0 keeps none: with one trainer, or a World that divides the batches,
	// each is asked for once. A Stream has none.
	Cache int
	// Ahead is how many batches of one trainer are made or sent at the same time. 0 means as many
	// as there are workers, and at least two. It bounds what a slow trainer costs.
	Ahead int
	// Ledger is a file that keeps what Dynamic trainers have acknowledged, if they name this host
	// first. A host that is started again with it goes on there. Without one a host that ends has
	// forgotten, and its trainers end with ErrLedger. It is of one data set, seed and batch size. A
	// Stream has none.
	Ledger string
	// Patience is how long a trainer may take to receive one batch that it has asked for, or a
	// Dynamic trainer may say nothing, before it counts as dead. 0 means 30 s.
	Patience time.Duration
}

// Options configure Dial.
type Options struct {
	// Key is the secret that data hosts and trainers know.
	Key []byte
	// TLS configures the connections. If it is nil, the certificates of data hosts are checked by
	// Fingerprint and Key alone. Otherwise Dial checks them by RootCAs and ServerName, or else by
	// the host in each address, and shows Certificates to data hosts that ask for one.
	TLS *tls.Config
	// Fingerprint is the SHA-256 of the certificate of the data hosts, see [Host.Fingerprint]. It
	// is checked if it is not zero, so all data hosts have one certificate then.
	Fingerprint [sha256.Size]byte
	// Unencrypted leaves TLS out, as HostOptions.Unencrypted of the data hosts. It is an error
	// together with TLS or Fingerprint.
	Unencrypted bool
	// World is the number of trainers that share each epoch, and Rank the number of this one. With
	// World 0 or 1 the trainer gets all batches of each epoch, whatever other trainers there are.
	// Of a Stream it gets its parts, as by data.Options.
	Rank, World int
	// Coordinated makes all trainers have the same number of steps: batches at the end of an epoch
	// that are fewer than World are left out. Step s of all trainers together is the batches from
	// s·World on. [Buckets] makes these be of similar lengths. It is not for a Stream.
	Coordinated bool
	// Dynamic has the first data host deal the batches of each epoch: each goes to one of the
	// Dynamic trainers that are there, however many, as fast as each takes them. A batch is
	// acknowledged when the loop goes on to the next one. What a trainer has not acknowledged when
	// it dies, is cut off or leaves its loop goes to another. All trainers name the same data host
	// first. World and Coordinated are not for it, and it is not for a Stream.
	Dynamic bool
	// Prefetch is how many batches are asked for ahead of the consumer; 0 means 4 for each data
	// host. PrefetchBytes limits their bytes, as far as the last batch tells; 0 means 256 MiB.
	Prefetch      int
	PrefetchBytes int
	// Patience is how long a data host may say nothing before its batches are asked of others, and
	// how long to wait for a data host when there is none. One batch has to arrive within this
	// time. 0 means 30 s.
	Patience time.Duration
}

var errUnencrypted = fmt.Errorf("%w: Unencrypted leaves out the TLS whose options are given", ErrOptions)

// defaultPatience is long enough for a busy machine, and for 100 MB by 30 Mbit/s.
const defaultPatience = 30 * time.Second

const defaultPrefetchBytes = 256 << 20

func (o Options) complete(hosts int) (Options, error) {
	o.World = cmp.Or(o.World, 1)
	o.Prefetch = cmp.Or(o.Prefetch, 4*hosts)
	o.PrefetchBytes = cmp.Or(o.PrefetchBytes, defaultPrefetchBytes)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	switch {
	case hosts == 0:
		return o, fmt.Errorf("%w: no address of a data host", ErrOptions)
	case len(o.Key) == 0:
		return o, fmt.Errorf("%w: the key is empty", ErrOptions)
	case o.Unencrypted && (o.TLS != nil || o.Fingerprint != [sha256.Size]byte{}):
		return o, errUnencrypted
	case o.World < 0 || o.Rank < 0 || o.Rank >= o.World:
		return o, fmt.Errorf("%w: Rank %d of World %d", ErrOptions, o.Rank, o.World)
	case o.Dynamic && (o.World > 1 || o.Coordinated):
		return o, fmt.Errorf("%w: Dynamic with World %d, Coordinated %t: the data host divides the batches", ErrOptions,
			o.World, o.Coordinated)
	case o.Prefetch < 0 || o.PrefetchBytes < 0 || o.Patience < 0:
		return o, fmt.Errorf("%w: Prefetch %d, PrefetchBytes %d, Patience %v: none can be negative", ErrOptions,
			o.Prefetch, o.PrefetchBytes, o.Patience)
	case o.Prefetch > mostAsked:
		return o, fmt.Errorf("%w: Prefetch %d: at most %d", ErrOptions, o.Prefetch, mostAsked)
	}
	return o, nil
}

func (o HostOptions) complete(workers int) (HostOptions, error) {
	o.Ahead = cmp.Or(o.Ahead, max(2, workers))
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	switch {
	case len(o.Key) == 0:
		return o, fmt.Errorf("%w: the key is empty", ErrOptions)
	case o.Unencrypted && o.TLS != nil:
		return o, errUnencrypted
	case o.Cache < 0 || o.Ahead < 0 || o.Patience < 0:
		return o, fmt.Errorf("%w: Cache %d, Ahead %d, Patience %v: none can be negative", ErrOptions, o.Cache,
			o.Ahead, o.Patience)
	}
	return o, nil
}
