package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBench_RowsThatNeedNoMPI: each row compares what it says, in the unit that it says. The values
// mean nothing.
func TestBench_RowsThatNeedNoMPI(t *testing.T) {
	program := filepath.Join(t.TempDir(), "shoal-cluster")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "bench", "cluster", "--quick", "--json", "--rows", "service",
		"--rows", "tensor")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"data_service_jpeg": "local_loader", "data_service_jpeg_apart": "local_loader",
		"data_service_jpeg_unencrypted": "local_loader", "data_service_jpeg_apart_unencrypted": "local_loader",
		"remote_tensor": "tls tcp", "remote_tensor_unencrypted": "tcp"}
	for line := range strings.Lines(string(out)) {
		var r struct {
			Row, Unit      string
			Shoal          float64
			Against, Ratio map[string]float64
			CPU            map[string]map[string]float64 `json:"cpu_us"`
			CPURatio       map[string]float64            `json:"cpu_ratio"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if r.Unit == "" || r.Shoal <= 0 {
			t.Errorf("%q", line)
		}
		for name := range strings.FieldsSeq(want[r.Row]) {
			if r.Against[name] <= 0 || r.Ratio[name] != r.Shoal/r.Against[name] {
				t.Errorf("%s: %q", name, line)
			}
			if r.CPU[name]["all"] <= 0 || r.CPURatio[name] <= 0 {
				t.Errorf("%s has no processor time: %q", name, line)
			}
		}
		// One epoch after another, so the parts and their sum are of the same one.
		if own := r.CPU["data_service"]; own != nil &&
			(own["host"] <= 0 || own["trainer"] <= 0 || own["all"] != own["host"]+own["trainer"]) {
			t.Errorf("%s: a host and a trainer have the processor time, not %v", r.Row, own)
		}
		delete(want, r.Row)
	}
	delete(want, "data_service_jpeg_apart") // which needs taskset and two processors
	delete(want, "data_service_jpeg_apart_unencrypted")
	if len(want) > 0 {
		t.Errorf("without the rows %v: %s", want, out)
	}
	if out, err := exec.CommandContext(t.Context(), program, "bench", "cluster", "--rows", "none").
		CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "mpi, service or tensor") {
		t.Errorf("%v: %s", err, out)
	}
}
