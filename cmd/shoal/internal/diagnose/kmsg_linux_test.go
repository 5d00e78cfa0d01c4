package diagnose

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

func TestAppendKill_DecodesRecords(t *testing.T) {
	chosen := make(map[int]oomKill)
	var all []oomKill
	for _, record := range []string{
		"6,1,5000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0," +
			"oom_memcg=/job,task_memcg=/job/worker,task=python,pid=12,uid=0\n",
		"3,2,5000100,-;Memory cgroup out of memory: Killed process 12 (python) total-vm:1kB, anon-rss:2kB\n" +
			" SUBSYSTEM=x\n",
		"6,3,6000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom," +
			"task_memcg=/,task=pt_data_worker,pid=13,uid=0\n",
		"3,4,7000000,-;Out of memory: Killed process 13 (pt_data_worker) total-vm:1kB\n",
		"6,5,8000000,-;some other message about process 14\n",
	} {
		all = appendKill(all, chosen, record)
	}
	want := []oomKill{
		{pid: 12, time: 5000100 * time.Microsecond, name: "python", group: "/job/worker", limited: "/job",
			line: "Memory cgroup out of memory: Killed process 12 (python) total-vm:1kB, anon-rss:2kB"},
		{pid: 13, time: 7 * time.Second, name: "pt_data_worker", group: "/",
			line: "Out of memory: Killed process 13 (pt_data_worker) total-vm:1kB"},
	}
	if len(all) != 2 || all[0] != want[0] || all[1] != want[1] {
		t.Errorf("decoded %+v, want %+v", all, want)
	}
}

// TestReadKills_ReadsTheWholeLog reads records from a pipe of packets: each read gives one record,
// and then EAGAIN, as with the kernel's log. The last record must be found.
func TestReadKills_ReadsTheWholeLog(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_DIRECT|syscall.O_CLOEXEC); err != nil {
		t.Skip("this system has no pipes of packets: ", err)
	}
	defer syscall.Close(ends[0])
	defer syscall.Close(ends[1])
	const others = 12 // a pipe holds 16 packets
	for i := range others + 1 {
		record := fmt.Sprintf("6,%d,%d,-;a message of the kernel\n", i, i)
		if i == others {
			record = "3,4,7000000,-;Out of memory: Killed process 13 (python) total-vm:1kB\n"
		}
		if _, err := syscall.Write(ends[1], []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	all := readKills(fmt.Sprintf("/proc/self/fd/%d", ends[0]))
	if len(all) != 1 || all[0].pid != 13 {
		t.Errorf("read %+v, want process 13", all)
	}
}
