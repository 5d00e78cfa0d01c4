//go:build linux

// Command pystorm is a worker of python/tests/storm.py, which kills Go and Python processes of one
// domain at random. It puts values into the queue of the Python program, or gets them, until it is
// killed:
//
//	pystorm produce|consume ID LEDGER
//
// The environment variable SHOAL_DOMAIN names the domain. The ledger is a file to which the worker
// appends a record for each value: 'B' before a put, 'P' after it, and 'G' after a get.
package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// elements is the number of elements of the array of each value.
const elements = 50

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "pystorm: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("got %d arguments, want produce|consume ID LEDGER", len(args))
	}
	id, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer ledger.Close()
	conn, err := joinDomain(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	q, err := ipc.Lookup[*ipc.Queue[pickle.Value]]("storm-queue")
	if err != nil {
		return err
	}
	defer q.Close()
	latest, err := ipc.Lookup[*ipc.Latest[pickle.Value]]("storm-latest")
	if err != nil {
		return err
	}
	defer latest.Close()
	if args[0] == "produce" {
		return produce(ctx, id, ledger, q, latest)
	}
	return consume(ctx, ledger, q, latest)
}

// joinDomain joins the domain that the environment variable SHOAL_DOMAIN names by an address and
// a key. The caller must close the connection.
func joinDomain(ctx context.Context) (*ipc.Conn[int], error) {
	address, key, found := strings.Cut(os.Getenv("SHOAL_DOMAIN"), " ")
	if !found {
		return nil, errors.New("SHOAL_DOMAIN is not set, want an address and a key: start pystorm by storm.py")
	}
	secret, err := hex.DecodeString(key)
	if err != nil {
		return nil, fmt.Errorf("SHOAL_DOMAIN: %w", err)
	}
	return ipc.Dial[int](ctx, address, secret)
}

// record appends a record to the ledger, in one write. kind is B before a put, P after it, and G
// after a get.
func record(ledger *os.File, kind byte, id, sequence int64) error {
	b := append([]byte(nil), kind)
	b = binary.LittleEndian.AppendUint64(b, uint64(id))
	_, err := ledger.Write(binary.LittleEndian.AppendUint64(b, uint64(sequence)))
	return err
}

// produce puts values with growing sequence numbers, and stores each tenth as the latest value. It
// returns only on an error, such as the end of ctx.
func produce(ctx context.Context, id int64, ledger *os.File, q *ipc.Queue[pickle.Value],
	latest *ipc.Latest[pickle.Value]) error {
	for sequence := int64(0); ; sequence++ {
		if err := record(ledger, 'B', id, sequence); err != nil {
			return err
		}
		v, err := newValue(id, sequence)
		if err != nil {
			return err
		}
		err = q.Put(ctx, v)
		if err == nil {
			err = record(ledger, 'P', id, sequence)
		}
		if err == nil && sequence%10 == 0 {
			_, err = latest.Store(ctx, v)
		}
		if err := errors.Join(err, v.Close()); err != nil {
			return err
		}
	}
}

// newValue returns the Python list [id, sequence, array]. The caller must close it.
func newValue(id, sequence int64) (pickle.Value, error) {
	t, err := tensor.NewShared(tensor.Int64, elements)
	if err != nil {
		return pickle.Value{}, err
	}
	for i := range tensor.Data[int64](t) {
		tensor.Data[int64](t)[i] = id<<32 + sequence
	}
	v, err := pickle.Encode([]any{id, sequence, pickle.Array{Tensor: t}})
	if err != nil {
		return v, errors.Join(err, t.Close())
	}
	if len(v.Tensors) == 1 && v.Tensors[0] != t {
		err = t.Close()
	}
	return v, err
}

// consume gets values, closes and checks them, together with the latest value. It returns only
// on an error, such as a wrong value or the end of ctx.
func consume(ctx context.Context, ledger *os.File, q *ipc.Queue[pickle.Value],
	latest *ipc.Latest[pickle.Value]) error {
	for {
		v, err := q.Get(ctx)
		if err != nil {
			return err
		}
		id, sequence, err := checkValue(v)
		if err == nil {
			err = record(ledger, 'G', id, sequence)
		}
		if err := errors.Join(err, v.Close()); err != nil {
			return err
		}
		newest, _, err := latest.Load()
		if err != nil {
			return err
		}
		_, _, err = checkValue(newest)
		if err := errors.Join(err, newest.Close()); err != nil {
			return err
		}
	}
}

// checkValue returns the id and the sequence number of a value. It returns an error if the value
// is not one of newValue, or an element of its array is wrong. It does not close the value.
func checkValue(v pickle.Value) (id, sequence int64, err error) {
	decoded, err := v.Decode()
	if err != nil {
		return 0, 0, err
	}
	list, ok := decoded.([]any)
	if !ok || len(list) != 3 {
		return 0, 0, fmt.Errorf("got %v, want a list of 3 values", decoded)
	}
	id, _ = list[0].(int64)
	sequence, _ = list[1].(int64)
	array, ok := list[2].(*pickle.Array)
	if !ok {
		return 0, 0, fmt.Errorf("got %T, want an array", list[2])
	}
	for i, x := range tensor.Data[int64](array.Tensor) {
		if x != id<<32+sequence {
			return 0, 0,
				fmt.Errorf("value %d of process %d: element %d is %d, want %d", sequence, id, i, x, id<<32+sequence)
		}
	}
	return id, sequence, nil
}
