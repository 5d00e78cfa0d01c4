package word

// The budget word is pages 40 | 0 7 | WAIT 1 | kind 2 | lane 14. A change of the pages must stamp
// the word with the changing lane, as changes of t do in a block's state word. docs/memory.md
// specifies the order of the steps, and the reaper's action after a death at each of them.
const (
	BudgetPageShift = 24
	budgetLaneMask  = 1<<14 - 1
	budgetKindShift = 14
	BudgetStamp     = 1<<16 - 1
	BudgetWait      = 1 << 16
	BudgetAdd       = 1
	BudgetSub       = 2
)

// A Budget holds the number of charged pages and the lane that is changing it.
type Budget uint64

// Pages returns the number of charged pages.
func (w Budget) Pages() uint64 { return uint64(w >> BudgetPageShift) }

// Lane returns the lane that is changing the word. It is meaningful only if the word is stamped.
func (w Budget) Lane() uint32 { return uint32(w & budgetLaneMask) }

// Kind returns the kind of the change: 0, BudgetAdd or BudgetSub.
func (w Budget) Kind() uint64 { return uint64(w >> budgetKindShift & 3) }

// IsStamped reports whether a lane is in the middle of a change.
func (w Budget) IsStamped() bool { return w&BudgetStamp != 0 }

// MakeBudget returns a budget word. It is stamped unless kind and lane are 0.
func MakeBudget(pages, kind uint64, lane uint32) Budget {
	return Budget(pages<<BudgetPageShift | kind<<budgetKindShift | uint64(lane))
}
