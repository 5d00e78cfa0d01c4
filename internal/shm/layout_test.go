package shm_test

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/sys"
)

func TestLayout_OffsetsAreThoseOfTheSpecification(t *testing.T) {
	for _, o := range shm.Offsets {
		if o.Got != o.Want {
			t.Errorf("%s is %d, want %d", o.Name, o.Got, o.Want)
		}
	}
}

// The picture of packed words in docs/memory.md has all their fields, with the bits that the code
// reads.
func TestLayout_WordsAreAsDrawn(t *testing.T) {
	page, err := os.ReadFile("../../docs/memory.md")
	check(t, err)
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
	for name, get := range shm.Fields {
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
	const want = 0xd237e727023e5f13
	if got := shm.LayoutHash(); got != want {
		t.Errorf("layout hash is %#x, want %#x", got, uint64(want))
	}
}

func TestAttach_ToAnotherVersionIsRefused(t *testing.T) {
	for name, change := range map[string]func(*shm.Domain){
		"layout": func(d *shm.Domain) { d.SetLayout(d.Magic(), shm.LayoutHash()+1) },
		"magic":  func(d *shm.Domain) { d.SetLayout(d.Magic()+1, shm.LayoutHash()) },
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, 1<<20, func(t *testing.T, f *family) {
				change(f.first)
				if _, err := f.attach(); !errors.Is(err, shm.ErrVersion) {
					t.Fatalf("attach: %v, want ErrVersion", err)
				}
			})
		})
	}
}

func TestAttach_ToFilesThatAreNoDomainIsRefused(t *testing.T) {
	d := newDomain(t, 1<<20)
	for name, size := range map[string]int64{"empty": 0, "short": shm.ControlSize - 1, "zeros": shm.ControlSize} {
		t.Run(name, func(t *testing.T) {
			control, err := os.Create(filepath.Join(t.TempDir(), "control"))
			check(t, err)
			defer control.Close()
			check(t, control.Truncate(size))
			data, err := sys.Reopen(d.Files()[1])
			check(t, err)
			defer data.Close()
			if _, err := shm.Attach(control, data); !errors.Is(err, shm.ErrVersion) {
				t.Fatalf("attach: %v, want ErrVersion", err)
			}
		})
	}
}

func TestAttach_WithTheDataOfAnotherDomainIsRefused(t *testing.T) {
	a, b := newDomain(t, 1<<20), newDomain(t, 4<<20)
	control, mine, err := a.Dup(sys.Reopen)
	check(t, err)
	defer control.Close()
	defer mine.Close()
	other, err := sys.Reopen(b.Files()[1])
	check(t, err)
	defer other.Close()
	if _, err := shm.Attach(control, other); !errors.Is(err, shm.ErrCorrupt) {
		t.Fatalf("attach: %v, want ErrCorrupt", err)
	}
}
