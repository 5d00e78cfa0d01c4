package codec_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/test/testutil"
)

// nested returns slices within slices, of so many levels.
func nested(levels int) forest {
	f := forest{}
	for range levels - 1 {
		f = forest{f}
	}
	return f
}

// docs/limits.md says what a message may have at most: so much is encoded, and more is an error.
func TestLimits_AreThoseOfThePage(t *testing.T) {
	page := testutil.Value(os.ReadFile("../../docs/limits.md"))(t)
	said := regexp.MustCompile(`A message has at most (\d+) MiB of encoded bytes, ([\d,]+) tensors and (\d+) levels`).
		FindStringSubmatch(strings.Join(strings.Fields(string(page)), " "))
	if said == nil {
		t.Fatal("docs/limits.md does not say the limits of a message")
	}
	var limits [3]int
	for i, text := range said[1:] {
		limits[i] = testutil.Value(strconv.Atoi(strings.ReplaceAll(text, ",", "")))(t)
	}
	bytes, blocks, levels := limits[0]<<20, limits[1], limits[2]

	const header = 5 // of MessagePack, for as many bytes
	if m := encode(t, make([]byte, bytes-header)); len(m.Body) != bytes {
		t.Errorf("%d bytes are encoded, want %d", len(m.Body), bytes)
	}
	testutil.ErrorIs(t, encodeError(t, make([]byte, bytes-header+1), codec.Limits{}), codec.ErrTooLong)

	var e codec.Encoder
	e.Reset(nil)
	for i := range blocks {
		e.Block(arena.Handle(i + 1))
	}
	testutil.NoError(t, e.Err())
	e.Block(arena.Handle(blocks + 1))
	testutil.ErrorIs(t, e.Err(), codec.ErrTooLong)
	if blocks != codec.MaxBlocks {
		t.Errorf("the page says %d tensors, want %d", blocks, codec.MaxBlocks)
	}

	testutil.NoError(t, encodeError(t, nested(levels), codec.Limits{}))
	testutil.ErrorIs(t, encodeError(t, nested(levels+1), codec.Limits{}), codec.ErrTooDeep)
}
