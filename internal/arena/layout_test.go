package arena_test

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestLayout_OffsetsAreThoseOfTheSpecification(t *testing.T) {
	for _, o := range arena.Offsets {
		if o.Got != o.Want {
			t.Errorf("%s is %d, want %d", o.Name, o.Got, o.Want)
		}
	}
}

// The picture of packed words in docs/memory.md has all their fields, with the bits that the code
// reads.
func TestLayout_WordsAreAsDrawn(t *testing.T) {
	page, err := os.ReadFile("../../docs/memory.md")
	testutil.NoError(t, err)
	_, picture, _ := strings.Cut(string(page), "### Layouts of words")
	picture, _, _ = strings.Cut(picture, "### ")
	line, field := regexp.MustCompile(`(?m)^    (\w*) +\|(.*)\|?$`), regexp.MustCompile(`(\w+) (\d+)(?:–(\d+))?`)
	drawn, word := make(map[string]uint64), ""
	for _, l := range line.FindAllStringSubmatch(picture, -1) {
		word = cmp.Or(l[1], word)
		for _, f := range field.FindAllStringSubmatch(l[2], -1) {
			high, _ := strconv.Atoi(f[2])
			low, _ := strconv.Atoi(cmp.Or(f[3], f[2]))
			drawn[word+"."+f[1]] = 1<<(high+1) - 1<<low
		}
	}
	read := make(map[string]uint64)
	for name, get := range arena.Fields {
		for bit := range 64 {
			if get(1<<bit) != 0 {
				read[name] |= 1 << bit
			}
		}
	}
	if !maps.Equal(drawn, read) {
		t.Errorf("the page draws\n%x\nand the code reads\n%x", drawn, read)
	}
}

// A change of this number is a change of the protocol: processes of both versions cannot share a
// domain.
func TestLayout_HashIsPinned(t *testing.T) {
	const want = 0x46865a966164c744
	if got := arena.LayoutHash(); got != want {
		t.Errorf("layout hash is %#x, want %#x", got, uint64(want))
	}
}

func TestAttach_ToAnotherVersionIsRefused(t *testing.T) {
	const ours = arena.ProtocolVersion
	for name, c := range map[string]struct {
		magic, layout, version uint64 // magic and layout are added to what this build has
		said                   string
	}{
		"newer":        {0, 1, ours + 1, fmt.Sprintf("has version %d,", ours+1)},
		"older":        {0, 1, ours - 1, fmt.Sprintf("has version %d,", ours-1)},
		"oldest":       {0, 1, 0, "has version below 9,"},
		"other layout": {0, 1, ours, fmt.Sprintf("layout %#x", arena.LayoutHash()+1)},
		"magic":        {1, 0, ours, "magic"},
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, 1<<20, func(t *testing.T, f *family) {
				f.first.SetLayout(f.first.Magic()+c.magic, arena.LayoutHash()+c.layout, c.version)
				_, err := f.attach()
				wantVersions(t, err, c.said, c.magic == 0)
			})
		})
	}
}

// wantVersions fails unless err is ErrVersion and says theirs, and this build's version where that
// is known.
func wantVersions(t *testing.T, err error, theirs string, both bool) {
	t.Helper()
	ours := fmt.Sprintf("this program has version %d,", arena.ProtocolVersion)
	if !errors.Is(err, arena.ErrVersion) || !strings.Contains(err.Error(), theirs) ||
		both && !strings.Contains(err.Error(), ours) {
		t.Errorf("%v: want ErrVersion, %q and %q", err, theirs, ours)
	}
}

// The first words of a control segment are where they are in all versions, whatever size it has.
func TestAttach_ToAnotherVersionOfAnotherSizeIsRefused(t *testing.T) {
	d := newDomain(t, 1<<20)
	for _, version := range []uint64{0, arena.ProtocolVersion - 1, arena.ProtocolVersion + 1} {
		control, err := os.Create(filepath.Join(t.TempDir(), "control"))
		testutil.NoError(t, err)
		defer control.Close()
		testutil.NoError(t, control.Truncate(arena.ControlSize+arena.PageSize))
		var head [56]byte
		binary.NativeEndian.PutUint64(head[0:], d.Magic())
		binary.NativeEndian.PutUint64(head[8:], 1234)
		binary.NativeEndian.PutUint64(head[48:], version)
		_, err = control.WriteAt(head[:], 0)
		testutil.NoError(t, err)
		data, err := sys.Reopen(d.Files()[1])
		testutil.NoError(t, err)
		defer data.Close()
		said := fmt.Sprintf("has version %d,", version)
		if version == 0 {
			said = "has version below 9,"
		}
		_, err = arena.Attach(control, data)
		wantVersions(t, err, said, true)
	}
}

func TestAttach_ToFilesThatAreNoDomainIsRefused(t *testing.T) {
	d := newDomain(t, 1<<20)
	for name, size := range map[string]int64{"empty": 0, "short": arena.ControlSize - 1, "zeros": arena.ControlSize} {
		t.Run(name, func(t *testing.T) {
			control, err := os.Create(filepath.Join(t.TempDir(), "control"))
			testutil.NoError(t, err)
			defer control.Close()
			testutil.NoError(t, control.Truncate(size))
			data, err := sys.Reopen(d.Files()[1])
			testutil.NoError(t, err)
			defer data.Close()
			if _, err := arena.Attach(control, data); !errors.Is(err, arena.ErrVersion) {
				t.Fatalf("attach: %v, want ErrVersion", err)
			}
		})
	}
}

func TestAttach_WithTheDataOfAnotherDomainIsRefused(t *testing.T) {
	a, b := newDomain(t, 1<<20), newDomain(t, 4<<20)
	control, mine, err := a.Dup(sys.Reopen)
	testutil.NoError(t, err)
	defer control.Close()
	defer mine.Close()
	other, err := sys.Reopen(b.Files()[1])
	testutil.NoError(t, err)
	defer other.Close()
	if _, err := arena.Attach(control, other); !errors.Is(err, arena.ErrCorrupt) {
		t.Fatalf("attach: %v, want ErrCorrupt", err)
	}
}
