package torch

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// A storeQuery is a decoded query of a TCPStore client. Its keys and values have the order of
// the operands; number is set for a query with a number.
type storeQuery struct {
	code   query
	keys   []string
	values [][]byte
	number int64
}

// storeOperands is the operand format of each query: k is a key, v a value, n a 64-bit and p a
// 32-bit number. A leading * means that a count precedes the operands, which repeat that many
// times.
var storeOperands = map[query]string{
	querySet: "kv", queryCompareSet: "kvv", queryGet: "k", queryAdd: "kn", queryCheck: "*k", queryWait: "*k",
	queryNumKeys: "", queryDelete: "k",
	queryAppend: "kv", queryMultiGet: "*k", queryMultiSet: "*kv", queryCancelWait: "", queryPing: "p",
	queryQueuePush: "kv", queryQueuePop: "k", queryQueueLen: "k", queryListKeys: "", queryBarrier: "kn",
}

// watchKey is the code of a query that only PyTorch 1 has.
const watchKey = 7

// A storeReader decodes the queries of one client. It detects the dialect by the first five
// bytes: PyTorch 2 starts with VALIDATE and a magic number, which as a query of PyTorch 1 would
// be a SET with an impossible key length. See Note [Dialects of TCPStore]. One goroutine may use
// it.
type storeReader struct {
	r     *bufio.Reader
	room  *storeRoom // the memory budget that the current query is charged to
	most  int64      // the limit of a value, in bytes
	begun bool
	first bool // the client speaks PyTorch 1
	taken int64
}

// nextQuery decodes the next query. It returns [io.EOF] if the client closed the connection
// between two queries. The error wraps [ErrTooLong] if an operand or the memory budget exceeds
// its limit, and [ErrProtocol] or [ErrUnsupported] for an unknown query. The query stays charged
// to the memory budget, also on an error, until releaseMemory is called.
func (r *storeReader) nextQuery() (q storeQuery, err error) {
	if !r.begun {
		if err := r.detectDialect(); err != nil {
			return q, err
		}
		r.begun = true
	}
	b, err := r.r.ReadByte()
	if err != nil {
		return q, err
	}
	if q.code, err = r.decodeCode(b); err != nil {
		return q, err
	}
	if err = r.readOperands(&q, storeOperands[q.code]); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return q, err
}

// releaseMemory releases the memory that nextQuery has charged to the budget.
func (r *storeReader) releaseMemory() {
	r.room.refund(r.taken)
	r.taken = 0
}

// detectDialect sets r.first by the first bytes of the client and consumes the greeting of
// PyTorch 2.
func (r *storeReader) detectDialect() error {
	b, err := r.r.Peek(1)
	if err != nil {
		return err
	}
	if r.first = b[0] != byte(queryValidate); r.first {
		return nil
	}
	if b, err = r.r.Peek(5); err != nil {
		return io.ErrUnexpectedEOF
	}
	if r.first = binary.LittleEndian.Uint32(b[1:]) != storeMagic; !r.first {
		_, err = r.r.Discard(5)
	}
	return err
}

// decodeCode decodes the code of a query in the client's dialect. The error wraps
// [ErrUnsupported] for WATCH_KEY and [ErrProtocol] for any other unknown code.
func (r *storeReader) decodeCode(b byte) (query, error) {
	if !r.first {
		if _, known := storeOperands[query(b)]; known {
			return query(b), nil
		}
		return 0, protocolError("unknown query %d of a client", b)
	}
	for q, code := range firstQueries {
		if code == b {
			return q, nil
		}
	}
	if b == watchKey {
		return 0, unsupported("watch_key of PyTorch 1: wait for the key, or poll it")
	}
	return 0, protocolError("first byte of a client is %d, which neither PyTorch 1 nor PyTorch 2 sends", b)
}

func (r *storeReader) readOperands(q *storeQuery, shape string) error {
	times := uint64(1)
	if shape != "" && shape[0] == '*' {
		n, err := r.readUint64()
		if err != nil {
			return err
		}
		if n > maxStoreKeys {
			return fmt.Errorf("%w: %d keys in one request, want at most %d", ErrTooLong, n, maxStoreKeys)
		}
		times, shape = n, shape[1:]
	}
	for ; times > 0; times-- {
		for _, kind := range shape {
			if err := r.readOperand(q, kind); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *storeReader) readOperand(q *storeQuery, kind rune) error {
	switch kind {
	case 'k':
		b, err := r.readBytes("key", maxStoreKey)
		q.keys = append(q.keys, string(b))
		return err
	case 'v':
		b, err := r.readBytes("value", r.most)
		q.values = append(q.values, b)
		return err
	case 'p':
		var b [4]byte
		_, err := io.ReadFull(r.r, b[:])
		q.number = int64(binary.LittleEndian.Uint32(b[:]))
		return err
	}
	n, err := r.readUint64()
	q.number = int64(n)
	return err
}

func (r *storeReader) readUint64() (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(r.r, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// storePiece is the number of bytes that are charged to the budget and allocated at a time.
const storePiece = 64 << 10

// readBytes reads a length and that many bytes, and charges them to the memory budget. It grows
// the buffer as bytes arrive and never allocates by the announced length alone, because a client
// may send any length. The error wraps [ErrTooLong] above most bytes, and calls the operand by
// the first argument.
func (r *storeReader) readBytes(what string, most int64) ([]byte, error) {
	n, err := r.readUint64()
	if err != nil {
		return nil, err
	}
	if n > uint64(most) {
		return nil, fmt.Errorf("%w: %s has %d bytes, want at most %d", ErrTooLong, what, n, most)
	}
	if err := r.chargeMemory(storeCost); err != nil {
		return nil, err
	}
	all := []byte{}
	for left := int(n); left > 0; {
		piece := min(left, storePiece)
		if err := r.chargeMemory(int64(piece)); err != nil {
			return nil, err
		}
		at := len(all)
		all = append(all, make([]byte, piece)...)
		if _, err := io.ReadFull(r.r, all[at:]); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		left -= piece
	}
	return all, nil
}

func (r *storeReader) chargeMemory(n int64) error {
	if err := r.room.charge(n); err != nil {
		return err
	}
	r.taken += n
	return nil
}
