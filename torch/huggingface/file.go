package huggingface

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/shoal-mp/shoal/tensor"
)

// A mapping is a file mapped into memory. The table that uses it owns it.
type mapping struct {
	bytes *tensor.Tensor
}

func (m *mapping) close() { m.bytes.Close() }

// read maps an Arrow IPC stream file and decodes it to a table without copying the record
// batches. The caller must close the table. The error wraps [value.ErrUnsupported]. read may
// panic if the file is damaged: see recoverFaults.
func read(path string) (_ *table, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unsupportedError("%v", err)
	}
	if info.Size() == 0 || info.Size() > math.MaxInt {
		return nil, unsupportedError("%s: file of %d bytes is not an Arrow file", path, info.Size())
	}
	bytes, err := tensor.FromFile(path, tensor.Uint8, int(info.Size()))
	if err != nil {
		return nil, unsupportedError("%v", err)
	}
	m := &mapping{bytes}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	t, err := decode(tensor.Data[uint8](bytes))
	if err != nil {
		return nil, unsupportedError("%s: %v", path, err)
	}
	t.files = []*mapping{m}
	return t, nil
}

// decode decodes an Arrow IPC stream to a table. The table refers to the bytes of stream, which
// must stay valid as long as it is used. It may panic if the stream is damaged: see
// recoverFaults.
func decode(stream []byte) (*table, error) {
	r, err := ipc.NewReaderFromMessageReader(&messages{rest: stream})
	if err != nil {
		return nil, err
	}
	t := new(table)
	for _, field := range r.Schema().Fields() {
		t.names = append(t.names, field.Name)
	}
	for r.Next() {
		batch := r.RecordBatch()
		columns := batch.Columns()
		for _, c := range columns {
			c.Retain()
		}
		t.add(append([]arrow.Array(nil), columns...))
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return t, nil
}

// messages is an [ipc.MessageReader] that does not copy. rest is the part of the stream that has
// not been read. One goroutine may use it.
type messages struct {
	rest []byte
}

// continues is the continuation marker that precedes a message since version 0.15 of the format:
// https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format.
const continues = 0xFFFFFFFF

// Retain does nothing, because the mapping outlives the messages.
func (*messages) Retain() {}

// Release does nothing.
func (*messages) Release() {}

// Message returns the next message, which refers to the bytes of the stream. It returns [io.EOF]
// at the end-of-stream marker or at the end of the bytes, and another error if the message is
// cut short or verify refuses it.
func (m *messages) Message() (*ipc.Message, error) {
	if len(m.rest) == 0 {
		return nil, io.EOF
	}
	word, err := m.takeBytes(4)
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(word)
	if n == continues {
		if word, err = m.takeBytes(4); err != nil {
			return nil, err
		}
		n = binary.LittleEndian.Uint32(word)
	}
	if n == 0 {
		m.rest = nil
		return nil, io.EOF
	}
	meta, err := m.takeBytes(int64(n))
	if err != nil {
		return nil, err
	}
	if err := verify(meta); err != nil {
		return nil, err
	}
	about, none := memory.NewBufferBytes(meta), memory.NewBufferBytes(nil)
	body, err := m.takeBytes(ipc.NewMessage(about, none).BodyLen())
	if err != nil {
		return nil, err
	}
	return ipc.NewMessage(about, memory.NewBufferBytes(body)), nil
}

func (m *messages) takeBytes(n int64) ([]byte, error) {
	if n < 0 || n > int64(len(m.rest)) {
		return nil, fmt.Errorf("message needs %d bytes, only %d remain: %w", n, len(m.rest), io.ErrUnexpectedEOF)
	}
	b := m.rest[:n:n]
	m.rest = m.rest[n:]
	return b, nil
}
