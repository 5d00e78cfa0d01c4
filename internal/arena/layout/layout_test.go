package layout_test

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An offset is one field of the shared structures.
type offset struct {
	name      string
	got, want uintptr
}

// offsets are the layout that docs/memory.md draws.
var offsets = []offset{
	{"sizeof header", unsafe.Sizeof(layout.Header{}), 384 + 8*(layout.ClassCount+layout.ProcessorWords)},
	{"header.magic", unsafe.Offsetof(layout.Header{}.Magic), 0},
	{"header.layout", unsafe.Offsetof(layout.Header{}.Layout), 8},
	{"header.dataSize", unsafe.Offsetof(layout.Header{}.DataSize), 16},
	{"header.limit", unsafe.Offsetof(layout.Header{}.Limit), 24},
	{"header.token", unsafe.Offsetof(layout.Header{}.Token), 32},
	{"header.version", unsafe.Offsetof(layout.Header{}.Version), 48},
	{"header.blocks", unsafe.Offsetof(layout.Header{}.Blocks), 64},
	{"header.ready", unsafe.Offsetof(layout.Header{}.Ready), 72},
	{"header.brk", unsafe.Offsetof(layout.Header{}.Brk), 80},
	{"header.hints", unsafe.Offsetof(layout.Header{}.Hints), 88},
	{"header.lost", unsafe.Offsetof(layout.Header{}.Lost), 96},
	{"header.budget", unsafe.Offsetof(layout.Header{}.Budget), 128},
	{"header.recovery", unsafe.Offsetof(layout.Header{}.Recovery), 192},
	{"header.deathEpoch", unsafe.Offsetof(layout.Header{}.DeathEpoch), 200},
	{"header.members", unsafe.Offsetof(layout.Header{}.Members), 208},
	{"header.pressure", unsafe.Offsetof(layout.Header{}.Pressure), 216},
	{"header.spinners", unsafe.Offsetof(layout.Header{}.Spinners), 256},
	{"header.xowait", unsafe.Offsetof(layout.Header{}.XOWait), 288},
	{"header.memwait", unsafe.Offsetof(layout.Header{}.MemWait), 320},
	{"header.relief", unsafe.Offsetof(layout.Header{}.Relief), 352},
	{"header.names", unsafe.Offsetof(layout.Header{}.Names), 360},
	{"header.quota", unsafe.Offsetof(layout.Header{}.Quota), 248},
	{"header.lists", unsafe.Offsetof(layout.Header{}.Lists), 384},
	{"header.processors", unsafe.Offsetof(layout.Header{}.Processors), 384 + 8*layout.ClassCount},
	{"sizeof participant", unsafe.Sizeof(layout.Participant{}), 256},
	{"participant.state", unsafe.Offsetof(layout.Participant{}.State), 0},
	{"participant.pid", unsafe.Offsetof(layout.Participant{}.PID), 8},
	{"participant.nap", unsafe.Offsetof(layout.Participant{}.Nap), 32},
	{"participant.bell", unsafe.Offsetof(layout.Participant{}.Bell), 40},
	{"sizeof laneRec", unsafe.Sizeof(layout.LaneRecord{}), 64},
	{"laneRec.opseq", unsafe.Offsetof(layout.LaneRecord{}.Opseq), 0},
	{"laneRec.block", unsafe.Offsetof(layout.LaneRecord{}.Block), 8},
	{"laneRec.from", unsafe.Offsetof(layout.LaneRecord{}.From), 16},
	{"laneRec.target", unsafe.Offsetof(layout.LaneRecord{}.Target), 24},
	{"laneRec.phase", unsafe.Offsetof(layout.LaneRecord{}.Phase), 32},
	{"sizeof block", unsafe.Sizeof(layout.Block{}), 64},
	{"block.own", unsafe.Offsetof(layout.Block{}.Own), 0},
	{"block.w", unsafe.Offsetof(layout.Block{}.State), 32},
	{"block.ext", unsafe.Offsetof(layout.Block{}.Extent), 40},
	{"block.committed", unsafe.Offsetof(layout.Block{}.Committed), 48},
	{"block.next", unsafe.Offsetof(layout.Block{}.Next), 56},
	{"sizeof ring", unsafe.Sizeof(layout.RingHeader{}), 512},
	{"ring.tail", unsafe.Offsetof(layout.RingHeader{}.Tail), 128},
	{"ring.head", unsafe.Offsetof(layout.RingHeader{}.Head), 256},
	{"ring.notEmpty", unsafe.Offsetof(layout.RingHeader{}.NotEmpty), 384},
	{"ring.notFull", unsafe.Offsetof(layout.RingHeader{}.NotFull), 416},
	{"sizeof slot", unsafe.Sizeof(layout.Slot{}), 256},
	{"slot.opseq", unsafe.Offsetof(layout.Slot{}.Opseq), 8},
	{"slot.meta", unsafe.Offsetof(layout.Slot{}.Meta), 16},
	{"slot.first", unsafe.Offsetof(layout.Slot{}.First), 24},
	{"slot.body", unsafe.Offsetof(layout.Slot{}.Body), 32},
	{"slot.others", unsafe.Offsetof(layout.Slot{}.Others), 232},
	{"participants", layout.OffParticipants, 64 << 10},
	{"lanes", layout.OffLanes, 128 << 10},
	{"blocks", layout.OffBlocks, 2 << 20},
	{"end", layout.ControlSize, 2<<20 + 256<<20},
}

// fields are the parts of packed words by the names of docs/memory.md, each as the code reads it.
var fields = map[string]func(w uint64) uint64{
	"stateWord.generation": func(w uint64) uint64 { return uint64(word.State(w).Generation()) },
	"stateWord.transit":    func(w uint64) uint64 { return word.State(w).TransitCount() },
	"stateWord.ALLOC":      func(w uint64) uint64 { return w & word.AllocBit },
	"stateWord.WAIT":       func(w uint64) uint64 { return w & word.WaitBit },
	"stateWord.GONE":       func(w uint64) uint64 { return w & word.GoneBit },
	"stateWord.kind":       func(w uint64) uint64 { return word.State(w).Kind() },
	"stateWord.lane":       func(w uint64) uint64 { return uint64(word.State(w).Lane()) },

	"extent.lead":   func(w uint64) uint64 { return w & layout.ExtentLead },
	"extent.small":  func(w uint64) uint64 { return w & layout.ExtentSmall },
	"extent.kind":   func(w uint64) uint64 { return uint64(layout.ExtentKind(w)) },
	"extent.class":  func(w uint64) uint64 { return uint64(layout.ExtentClass(w)) },
	"extent.offset": layout.ExtentOffset,

	"slotWord.lap":   func(w uint64) uint64 { return word.Slot(w).Lap() },
	"slotWord.state": func(w uint64) uint64 { return word.Slot(w).State() },
	"slotWord.span":  func(w uint64) uint64 { return word.Slot(w).Span() - 1 },
	"slotWord.lane":  func(w uint64) uint64 { return uint64(word.Slot(w).Lane()) },

	"lockWord.pid":   func(w uint64) uint64 { return uint64(word.Lock(w).PID()) },
	"lockWord.epoch": func(w uint64) uint64 { return w >> word.EpochShift & word.EpochMask },
	"lockWord.seat":  func(w uint64) uint64 { return uint64(word.Lock(w).Seat()) },
	"lockWord.state": func(w uint64) uint64 { return uint64(word.Lock(w).State()) },

	"participantWord.epoch": func(w uint64) uint64 { return uint64(word.Participant(w).Epoch()) },
	"participantWord.state": func(w uint64) uint64 { return word.Participant(w).State() },

	"budgetWord.pages": func(w uint64) uint64 { return uint64(word.Budget(w).Pages()) },
	"budgetWord.WAIT":  func(w uint64) uint64 { return w & word.BudgetWait },
	"budgetWord.kind":  func(w uint64) uint64 { return uint64(word.Budget(w).Kind()) },
	"budgetWord.lane":  func(w uint64) uint64 { return uint64(word.Budget(w).Lane()) },
}

func TestLayout_OffsetsAreThoseOfTheSpecification(t *testing.T) {
	for _, o := range offsets {
		if o.got != o.want {
			t.Errorf("%s is %d, want %d", o.name, o.got, o.want)
		}
	}
}

// The picture of packed words in docs/memory.md has all their fields, with the bits that the code
// reads.
func TestLayout_WordsAreAsDrawn(t *testing.T) {
	page, err := os.ReadFile("../../../docs/memory.md")
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
	for name, get := range fields {
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
	if got := layout.Hash(); got != want {
		t.Errorf("layout hash is %#x, want %#x", got, uint64(want))
	}
}
