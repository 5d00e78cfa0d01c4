package bench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
)

// rows are the names that users and programs know.
var rows = map[string][]string{
	"core": {
		"handle_rtt_spin", "handle_msgs_per_s", "queue_msgs_per_s", "queue_batch", "alloc_put_get_release",
		"handle_rtt_parked",
		"tensor_rtt_64B", "tensors_per_s", "tensor_life",
		"tensor_rtt_4KiB", "tensor_rtt_1MiB", "tensor_rtt_64MiB", "tensor_rtt_touch_64MiB", "fresh_tensor_64MiB",
		"tensor_rtt_burners", "tensor_rtt_burners_p999",
		"spawn_first_statement", "spawn_64_workers", "worker_pss", "reap_64k_blocks", "death_to_survivor",
		"death_to_receiver",
	},
	"sync": {
		"mutex_uncontended", "mutex_contended_2", "value_add", "value_add_2",
		"event_rtt_spin", "semaphore_rtt_spin", "barrier_cycle_spin", "event_rtt", "semaphore_rtt", "barrier_cycle",
		"event_rtt_near", "semaphore_rtt_near", "barrier_cycle_near",
		"event_rtt_2ms",
		"pool_start_4", "pool_start_4_warm", "warm_first_statement", "pool_map_1000_tiny",
		"pool_starmap_4_chunks", "starmap_fresh", "pool_starmap_default",
		"manager_call", "manager_call_parked", "manager_read",
	},
	"first":  {"empty_put_close", "empty_put_drop", "pool_map_ints", "pool_map_goroutines", "loader_get"},
	"sizes":  {"rtt_4B", "rtt_64B", "rtt_200B", "rtt_1KiB", "rtt_16KiB", "rtt_256KiB", "rtt_4MiB", "rtt_64MiB"},
	"floors": {"line_rtt", "bare_ring_per_s", "futex_rtt", "eventfd_rtt", "cas", "memcpy_64MiB", "sum_64MiB"},
	"idle":   {"idle_switches_per_s"},
	"many": {
		"queue_new_10", "queue_close_10", "queue_new_1k", "queue_close_1k",
		"queue_new_10k", "queue_close_10k", "queue_new_30k", "queue_close_30k",
		"dial_10", "dial_3k",
		"parked_rtt_10", "parked_rtt_1k", "parked_rtt_5k",
		"parked_rtt_waiters_10", "parked_rtt_waiters_1k", "parked_rtt_waiters_5k",
		"spawn_blocks_1k", "spawn_blocks_1M", "queue_new_1M_slots", "idle_process_200",
	},
	"kernels": {
		"product_256", "product_512", "product_1024",
		"conv1_forward", "conv1_filters", "conv2_forward", "conv2_filters", "conv2_images",
		"fc1_forward", "fc1_weights", "fc1_input", "fc2_forward", "fc2_weights", "fc2_input", "mnist_products",
	},
	"train": {"mnist_step", "hogwild_1", "hogwild_2", "hogwild_4", "hogwild_4_oversubscribed"},
	"hogwild": {
		"hogwild_1", "hogwild_2", "hogwild_4", "hogwild_1_ignored", "hogwild_2_ignored", "hogwild_4_ignored",
	},
	"ways": {
		"hogwild_1", "all_reduce_1", "periodic_1", "data_parallel_1", "hogwild_2", "all_reduce_2",
		"periodic_2", "data_parallel_2",
		"hogwild_4", "all_reduce_4", "periodic_4", "data_parallel_4",
	},
	"ops": strings.Fields(
		`op_new_result op_dropped_result op_add op_add_number op_mul_row op_mul_col op_add_short_row op_add_short_col op_add_channels op_add_transposed op_div op_maximum
		op_gt op_gt_number op_eq_int64 op_add_int64 op_where op_masked_fill op_clamp op_neg op_abs op_relu op_sqrt op_rsqrt op_reciprocal op_floor op_round op_exp
		op_log op_tanh op_sigmoid op_square op_sum op_sum_0 op_sum_1 op_sum_short op_mean_channels op_var_0 op_var_1 op_amax op_amax_0 op_amax_1
		op_argmax_0 op_argmax_1 op_argmax_short op_any_1 op_cumsum op_cat_0 op_cat_1 op_transpose op_channels_last op_to_float64 op_to_int64 op_to_float16
		op_to_bfloat16 op_byte_to_float32 op_int64_to_float32 op_float16_to_float32 op_bool_to_float32 op_index_select_0 op_index_select_1 op_gather_0
		op_gather_1 op_masked_select op_nonzero op_sort
		op_cos op_sin op_erf op_expm1 op_log1p op_trunc op_ceil op_sign op_isfinite op_isnan op_isinf op_not op_pow3 op_pow_half op_pow_frac op_pow_inverse
		op_atan2 op_hypot op_logaddexp op_floor_divide op_remainder op_power op_minimum op_and op_xor op_ne op_le op_sub op_add_f64 op_exp_f64 op_log_f64
		op_tanh_f64 op_sqrt_f64 op_sum_f64 op_sum0_f64 op_sum1_f64 op_add_f16 op_mul_f16 op_exp_f16 op_sum_f16 op_sum1_f16 op_gt_f16 op_add_bf16 op_mul_bf16
		op_exp_bf16 op_sum_bf16 op_sum1_bf16 op_relu_bf16 op_mul_i64 op_floordiv_i64 op_rem_i64 op_div_i64 op_max_i64 op_sum_i64 op_sum1_i64 op_amax_i64
		op_add_i32 op_mul_i32 op_add_u8 op_max_u8 op_sum_u8 op_eq_u8 op_add_u8_f32 op_add_i64_f32 op_all op_all_1 op_amin op_amin_0 op_prod op_prod_1
		op_mean op_mean_1 op_std op_std_1 op_max_dim0 op_max_dim1 op_min_dim1 op_cumsum_0 op_cumsum_i64 op_argmin_1 op_sum_t op_sum_mid op_sum_last2
		op_mean_f16 op_index_two op_index_rows op_index_grid op_index_few op_index_select_i64 op_index_select_u8 op_index_select_1_f64 op_scatter_0
		op_scatter_1 op_scatter_add_0 op_scatter_add_1 op_index_add_0 op_index_add_1 op_index_copy_0 op_topk10 op_topk10_flat op_argsort_0 op_argsort_1
		op_sort_flat op_sort_i64 op_sort_big op_nonzero_f32 op_flip_1 op_flip_0 op_where_bc op_where_i64 op_masked_select_i64 op_arange op_arange_i64
		op_linspace op_eye op_full op_zeros op_rand op_randn op_randint op_randperm op_bernoulli op_uniform op_normal op_stack op_stack_2 op_clone op_copy_t
		op_copy_f64 op_t_clone_f64 op_t_clone_u8 op_t_clone_f16 op_expand_contig op_slice_step op_add_t op_add_tt op_add_slice op_exp_t op_exp_slice op_mm
		op_mm_t op_mm_f64 op_mm_bf16 op_mm_f16 op_mm_i64 op_mv op_vm op_mv_t op_dot op_bmm op_mm_small op_mm_thin op_add_scalar_ op_mul_scalar_ op_axpy_
		op_fill_ op_zero_ op_equal op_allclose op_add_ op_clamp_ op_exp_ op_add10 op_sum10 op_exp10 op_amax10 op_cat10 op_to10 op_argmax10 op_sort10 op_item
		op_view10 op_std10 op_where10 op_index10 op_lt op_ge op_or op_keep op_ones op_add_mm
		op_softmax op_softmax_step op_log_softmax op_log_softmax_step op_layer_norm op_layer_norm_step op_cross_entropy op_cross_entropy_step
		op_attention op_attention_step op_transformer_block op_transformer_block_step op_mlp_step op_cnn_step`),
	"steps":  stepRows(),
	"dtypes": dtypeRows(),
	"layers": strings.Fields(`layer_norm layer_norm_step layer_gelu layer_gelu_step layer_softmax layer_softmax_step
		layer_attention_128 layer_attention_128_step layer_attention_causal_128 layer_attention_causal_128_step
		layer_attention_512 layer_attention_512_step layer_attention_causal_512 layer_attention_causal_512_step
		layer_lstm_16 layer_lstm_16_step layer_gru_16 layer_gru_16_step layer_lstm_256 layer_lstm_256_step layer_gru_256 layer_gru_256_step
		layer_encoder layer_encoder_step`),
	"dist": {"all_reduce_4B", "all_reduce_1MiB", "all_reduce_64MiB", "broadcast_64MiB", "all_gather_64MiB",
		"all_reduce_25MiB_2", "all_reduce_25MiB_shared_2", "all_reduce_25MiB_4", "all_reduce_25MiB_shared_4",
		"all_reduce_25MiB_8", "all_reduce_25MiB_shared_8"},
	"loader": {"loader_light", "loader_first_batch", "loader_jpeg", "loader_first_jpegs", "loader_png",
		"loader_memory_1", "loader_memory_2", "loader_memory_8"},
	"scale": {"names_lookup_16", "names_lookup_2k", "dict_get_1k", "dict_get_1M", "dict_popitem_1k",
		"dict_popitem_1M", "first_batch_1k", "first_batch_1M",
		"barrier_8", "barrier_32", "barrier_64", "producers_1", "producers_2", "producers_4", "producers_8"},
	"peers": {"rtt_64B_iceoryx2", "rtt_64B_shmipc", "rtt_1MiB_iceoryx2", "rtt_1MiB_shmipc", "rtt_64MiB_iceoryx2",
		"rtt_64MiB_shmipc", "msgs_per_s_iceoryx2", "msgs_per_s_shmipc", "wake_rtt_iceoryx2"},
	"files": append([]string{"queue_rtt_1MiB", "copy_1MiB", "pipe_1MiB", "queue_rtt_256MiB", "copy_256MiB",
		"pipe_256MiB"}, append(fileRows("1MiB"), fileRows("256MiB")...)...),
}

// stepRows are the rows of suite steps: each work with 1, 2 and 4 threads.
func stepRows() (names []string) {
	for _, work := range strings.Fields(
		`op_add op_mul_row op_gt op_exp op_tanh op_sum op_sum_0 op_amax_1 op_softmax op_to_float16
		op_transpose op_uniform op_normal op_sgd op_adam op_mm
		step_mlp step_cnn step_cnn32 step_transformer step_lstm step_thin`) {
		names = append(names, work+"_1", work+"_2", work+"_4")
	}
	return names
}

// dtypeRows are operations of each dtype that they are defined for.
func dtypeRows() (names []string) {
	all := strings.Fields(`add sub mul div maximum minimum remainder floor_divide eq lt and or power atan2 hypot
		logaddexp not neg abs relu exp log sqrt tanh sigmoid erf cube clamp sum sum_0 sum_1 mean_1 std amax_0 amax_1
		argmax_1 max_0 all_1 any_0 cumsum_1 sort_1 topk nonzero flip index index_select matmul contiguous to_float32
		to_float16 to_int64 cat stack where equal copy_ clamp_ masked_fill_ index_add_ uniform_ normal_`)
	const floats = "hypot logaddexp mean_1 std uniform_ normal_"
	for _, dt := range []struct{ name, without string }{
		{"float32", ""}, {"float64", ""}, {"float16", ""}, {"bfloat16", ""},
		{"int64", floats}, {"int32", floats}, {"uint8", floats},
		{"bool", "sub remainder floor_divide power neg abs relu argmax_1 matmul clamp_ " + floats},
		{"complex64", `maximum minimum remainder floor_divide lt atan2 hypot logaddexp relu erf clamp std amax_0
			amax_1 argmax_1 max_0 sort_1 topk clamp_ uniform_ normal_`},
	} {
		for _, o := range all {
			if !slices.Contains(strings.Fields(dt.without), o) {
				names = append(names, "dtype_"+dt.name+"_"+o)
			}
		}
	}
	return names
}

// fileRows are those of one size.
func fileRows(size string) (names []string) {
	for _, row := range []string{
		"pickle_save", "pickle_load", "msgpack_save", "msgpack_load", "npy_save", "npy_load", "npy_map",
		"hdf5_save", "hdf5_load", "hdf5_gzip_save", "hdf5_gzip_load",
		"safetensors_save", "safetensors_load", "safetensors_map", "pt_save", "pt_load", "pt_map",
	} {
		names = append(names, row+"_"+size)
	}
	return names
}

func run(t *testing.T, opts bench.Options) []bench.Result {
	t.Helper()
	var out bytes.Buffer
	opts.Out, opts.JSON, opts.Quick = &out, true, true
	if err := bench.Run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	var results []bench.Result
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	for dec.More() {
		var r bench.Result
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return results
}

func TestEveryRowAppearsOnce(t *testing.T) {
	got := make(map[string][]string)
	for _, r := range run(t, bench.Options{All: true}) {
		got[r.Suite] = append(got[r.Suite], r.Name)
		// What a small set needs may drown in what the garbage collector gives back meanwhile.
		none := r.Suite == "idle" || strings.HasPrefix(r.Name, "loader_memory")
		if r.Unit == "" || r.Value < 0 || r.Value == 0 && !none || (r.Floor > 0) != (r.RatioToFloor > 0) {
			t.Errorf("row %+v", r)
		}
	}
	for _, s := range bench.Suites() {
		if strings.HasPrefix(s.Name, "torch") || s.Name == "python" {
			continue // both of their sides need a PyTorch
		}
		if s.Doc == "" || !slices.Equal(got[s.Name], rows[s.Name]) {
			t.Errorf("suite %s has rows\n%v, want\n%v", s.Name, got[s.Name], rows[s.Name])
		}
	}
}

func TestCoreRunsWithoutASuite(t *testing.T) {
	results := run(t, bench.Options{})
	if len(results) != len(rows["core"]) || results[0].Suite != "core" {
		t.Errorf("%d rows, first %+v", len(results), results[0])
	}
}

func TestUnknownSuiteAndPeerAreErrors(t *testing.T) {
	if err := bench.Run(t.Context(), bench.Options{Suites: []string{"cor"}}); !errors.Is(err, bench.ErrSuite) {
		t.Errorf("suite: %v", err)
	}
	if err := bench.Run(t.Context(), bench.Options{Against: "gloo"}); !errors.Is(err, bench.ErrPeer) {
		t.Errorf("peer: %v", err)
	}
	if err := bench.Run(t.Context(), bench.Options{Against: "torch",
		Python: "no-such-python"}); !errors.Is(err, bench.ErrPeer) {
		t.Errorf("interpreter: %v", err)
	}
}

// withTorch writes a package torch that shares plain arrays, so that the script and the protocol
// are tested where there is no PyTorch.
func withTorch(t *testing.T) (python string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 in PATH")
	}
	lib, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", lib+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"))
	return python
}

func TestPeerDoesTheSameRows(t *testing.T) {
	python := withTorch(t)
	for _, r := range run(t, bench.Options{Suites: []string{"core", "sync"}, Against: "torch", Python: python}) {
		// PyTorch has no counterpart of these, or one that is too much for one machine; its calls
		// are all parked; its survivors wait for ever.
		without := strings.HasPrefix(r.Name, "handle_") || strings.HasPrefix(r.Name, "death_to_") ||
			slices.Contains([]string{"alloc_put_get_release", "tensor_rtt_burners_p999", "reap_64k_blocks",
				"spawn_64_workers", "manager_call_parked"}, r.Name)
		if without {
			if r.Peer != "" {
				t.Errorf("row %+v, want no peer", r)
			}
			continue
		}
		if r.Peer == "" || r.PeerValue <= 0 || r.RatioToPeer <= 0 {
			t.Errorf("row %+v", r)
		}
	}
}

// The suite peers has programs of its own beside it, and so no script of PyTorch.
func TestASuiteWithoutAScriptAsksNoInterpreter(t *testing.T) {
	results := run(t, bench.Options{Suites: []string{"peers"}, Against: "torch", Python: "no-such-python"})
	for _, r := range results {
		if r.Suite != "peers" || r.Value <= 0 {
			t.Errorf("row %+v", r)
		}
	}
	if len(results) == 0 {
		t.Error("no row")
	}
}
