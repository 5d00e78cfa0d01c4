package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const root = "../.."

func TestThePagesAreUpToDate(t *testing.T) {
	for _, p := range pages {
		want, err := p.render(root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(root + "/docs/" + p.name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s.md is not what docs/%s.txt says: run go generate ./internal/parity", p.name, p.name)
		}
	}
}

func TestTheTableIsChecked(t *testing.T) {
	tree := &tree{tests: map[string]bool{"ipc.TestA": true}, names: map[string]bool{"ipc": true, "ipc.Queue": true, "ipc.Queue.Put": true}}
	for _, c := range []struct{ text, want string }{
		{"Queue | `ipc.Queue` |  | ipc.TestA", ""},
		{"Queue.put | `ipc.Queue.Put` |  | ipc.TestA", ""},
		{"fork | - | threads do not survive it | -", ""},
		{"Pool | `pool.Pool` |  | ?pool.TestB", ""},
		{"Queue | `ipc.Queue` |  | ipc.TestB", "no test ipc.TestB"},
		{"Queue | `ipc.Queue.Get` |  | ipc.TestA", "no ipc.Queue.Get"},
		{"Queue | `ipc.Queue` | see `ipc.Nothing` | ipc.TestA", "no ipc.Nothing"},
		{"Queue | `ipc.Queue` |  | -", "no test"},
		{"fork | - |  | -", "neither"},
		{"fork | `ipc.Queue` | ipc.TestA", "columns"},
		{"fork | - | no | -\nfork | - | no | -", "twice"},
	} {
		_, err := pages[0].renderTable(c.text, tree)
		if err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// names are those that a table of torch.multiprocessing, multiprocessing's contexts and PyTorch's Hogwild example has to have.
var names = strings.Fields(`set_sharing_strategy get_sharing_strategy get_all_sharing_strategies spawn start_processes
	ProcessContext.join ProcessContext.pids SpawnContext ProcessException ProcessRaisedException ProcessExitedException reductions
	share_memory_ is_shared share_memory from_file frombuffer Process is_alive exitcode terminate kill interrupt close name pid
	ident daemon authkey sentinel current_process parent_process active_children cpu_count get_context get_start_method set_start_method
	get_all_start_methods set_executable set_forkserver_preload freeze_support Pipe Connection.send Connection.recv send_bytes recv_bytes
	recv_bytes_into poll fileno closed readable writable Client Listener wait Queue put get put_nowait get_nowait qsize empty full
	join_thread cancel_join_thread JoinableQueue task_done SimpleQueue Lock RLock Semaphore BoundedSemaphore Condition Event Barrier
	BrokenBarrierError Value Array RawValue RawArray copy synchronized Pool apply apply_async map map_async starmap starmap_async imap
	imap_unordered AsyncResult IMapIterator ThreadPool Manager BaseManager BaseProxy Token SharedMemoryManager SharedMemory ShareableList
	TimeoutError ProcessError BufferTooShort AuthenticationError get_logger log_to_stderr allow_connection_pickling reducer
	ProcessPoolExecutor init_reductions ENV_VAR_PARALLEL_START acquire release locked get_value wait_for notify notify_all is_set set clear
	parties n_waiting broken get_lock get_obj value dict list Namespace register connect get_server shutdown buf size unlink count index format
	accept last_accepted dump ForkingPickler DupFd send_handle recv_handle --batch-size --test-batch-size --epochs --lr --momentum --seed --log-interval --num-processes --cuda --mps --device --save_model
	--dry-run`)

func TestNoNameIsLeftOut(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/parity.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, " | "); ok {
			all = append(all, strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" ,;()=*", r) })...)
		}
	}
	for _, n := range names {
		found := false
		for _, a := range all {
			found = found || a == n || strings.HasSuffix(a, "."+n)
		}
		if !found {
			t.Errorf("%s is not in the table", n)
		}
	}
}
