package bench

import "github.com/shoal-mp/shoal/tensor"

// sweepOperations returns the operations of package tensor that the other rows do not cover, for
// most dtypes and layouts and for small tensors. Names and shapes must match the peer's script.
func sweepOperations(*operands) []operation {
	const N = 512
	g := tensor.NewGenerator(1)
	x := tensor.RandN(tensor.Float32, g, N, N)
	y := tensor.RandN(tensor.Float32, g, N, N)
	p := tensor.Clamp(tensor.Rand(tensor.Float32, g, N, N), 0.01, 1)
	x64, y64 := x.To(tensor.Float64), y.To(tensor.Float64)
	h, h2 := x.To(tensor.Float16), y.To(tensor.Float16)
	b, b2 := x.To(tensor.BFloat16), y.To(tensor.BFloat16)
	i64 := tensor.RandInt(g, 1, 500, N, N)
	j64 := tensor.RandInt(g, 1, 500, N, N)
	i32, j32 := i64.To(tensor.Int32), j64.To(tensor.Int32)
	u8 := tensor.RandInt(g, 1, 100, N, N).To(tensor.Uint8)
	v8 := tensor.RandInt(g, 1, 100, N, N).To(tensor.Uint8)
	m := tensor.Gt(x, y)
	m2 := tensor.Gt(y, p)
	n := N * N
	fi, fj := tensor.RandInt(g, 0, N, n), tensor.RandInt(g, 0, N, n)
	r := tensor.RandInt(g, 0, N, N)
	c := r.Unsqueeze(1)
	k8 := tensor.RandInt(g, 0, N, 8)
	xt := x.T()
	perm := tensor.RandPerm(g, N)
	vec := tensor.RandN(tensor.Float32, g, N)
	w := x.Clone()
	ten, ten2 := tensor.RandN(tensor.Float32, g, 10), tensor.RandN(tensor.Float32, g, 10)
	img := tensor.RandN(tensor.Float32, g, 16, 16, 32, 32)
	q3 := tensor.RandN(tensor.Float32, g, 16, 128, 64)
	k3 := tensor.RandN(tensor.Float32, g, 16, 64, 128)
	flat := x.View(n)
	big := tensor.RandInt(g, 0, 1<<40, N, N)
	none := func(f func()) func() *tensor.Tensor {
		return func() *tensor.Tensor { f(); return nil }
	}
	two := func(f func() (_, _ *tensor.Tensor)) func() *tensor.Tensor {
		return func() *tensor.Tensor { a, b := f(); a.Close(); return b }
	}
	return []operation{
		{"cos", func() *tensor.Tensor { return tensor.Cos(x) }},
		{"sin", func() *tensor.Tensor { return tensor.Sin(x) }},
		{"erf", func() *tensor.Tensor { return tensor.Erf(x) }},
		{"expm1", func() *tensor.Tensor { return tensor.Expm1(x) }},
		{"log1p", func() *tensor.Tensor { return tensor.Log1p(p) }},
		{"trunc", func() *tensor.Tensor { return tensor.Trunc(x) }},
		{"ceil", func() *tensor.Tensor { return tensor.Ceil(x) }},
		{"sign", func() *tensor.Tensor { return tensor.Sign(x) }},
		{"isfinite", func() *tensor.Tensor { return tensor.IsFinite(x) }},
		{"isnan", func() *tensor.Tensor { return tensor.IsNaN(x) }},
		{"isinf", func() *tensor.Tensor { return tensor.IsInf(x) }},
		{"not", func() *tensor.Tensor { return tensor.Not(m) }},
		{"pow3", func() *tensor.Tensor { return tensor.Pow(x, 3) }},
		{"pow_half", func() *tensor.Tensor { return tensor.Pow(p, 0.5) }},
		{"pow_frac", func() *tensor.Tensor { return tensor.Pow(p, 2.5) }},
		{"pow_inverse", func() *tensor.Tensor { return tensor.Pow(p, -1) }},
		{"atan2", func() *tensor.Tensor { return tensor.Atan2(x, y) }},
		{"hypot", func() *tensor.Tensor { return tensor.Hypot(x, y) }},
		{"logaddexp", func() *tensor.Tensor { return tensor.Logaddexp(x, y) }},
		{"floor_divide", func() *tensor.Tensor { return tensor.FloorDivide(x, y) }},
		{"remainder", func() *tensor.Tensor { return tensor.Remainder(x, y) }},
		{"power", func() *tensor.Tensor { return tensor.Power(p, y) }},
		{"minimum", func() *tensor.Tensor { return tensor.Minimum(x, y) }},
		{"and", func() *tensor.Tensor { return tensor.And(m, m2) }},
		{"xor", func() *tensor.Tensor { return tensor.Xor(m, m2) }},
		{"ne", func() *tensor.Tensor { return tensor.Ne(x, y) }},
		{"le", func() *tensor.Tensor { return tensor.Le(x, y) }},
		{"sub", func() *tensor.Tensor { return tensor.Sub(x, y) }},
		{"add_f64", func() *tensor.Tensor { return tensor.Add(x64, y64) }},
		{"exp_f64", func() *tensor.Tensor { return tensor.Exp(x64) }},
		{"log_f64", func() *tensor.Tensor {
			size := tensor.Abs(x64)
			defer size.Close() // PyTorch frees unreferenced tensors
			return tensor.Log(size)
		}},
		{"tanh_f64", func() *tensor.Tensor { return tensor.Tanh(x64) }},
		{"sqrt_f64", func() *tensor.Tensor { return tensor.Sqrt(x64) }},
		{"sum_f64", func() *tensor.Tensor { return tensor.Sum(x64) }},
		{"sum0_f64", func() *tensor.Tensor { return tensor.Sum(x64, 0) }},
		{"sum1_f64", func() *tensor.Tensor { return tensor.Sum(x64, 1) }},
		{"add_f16", func() *tensor.Tensor { return tensor.Add(h, h2) }},
		{"mul_f16", func() *tensor.Tensor { return tensor.Mul(h, h2) }},
		{"exp_f16", func() *tensor.Tensor { return tensor.Exp(h) }},
		{"sum_f16", func() *tensor.Tensor { return tensor.Sum(h) }},
		{"sum1_f16", func() *tensor.Tensor { return tensor.Sum(h, 1) }},
		{"gt_f16", func() *tensor.Tensor { return tensor.Gt(h, h2) }},
		{"add_bf16", func() *tensor.Tensor { return tensor.Add(b, b2) }},
		{"mul_bf16", func() *tensor.Tensor { return tensor.Mul(b, b2) }},
		{"exp_bf16", func() *tensor.Tensor { return tensor.Exp(b) }},
		{"sum_bf16", func() *tensor.Tensor { return tensor.Sum(b) }},
		{"sum1_bf16", func() *tensor.Tensor { return tensor.Sum(b, 1) }},
		{"relu_bf16", func() *tensor.Tensor { return tensor.ReLU(b) }},
		{"mul_i64", func() *tensor.Tensor { return tensor.Mul(i64, j64) }},
		{"floordiv_i64", func() *tensor.Tensor { return tensor.FloorDivide(i64, j64) }},
		{"rem_i64", func() *tensor.Tensor { return tensor.Remainder(i64, j64) }},
		{"div_i64", func() *tensor.Tensor { return tensor.Div(i64, j64) }},
		{"max_i64", func() *tensor.Tensor { return tensor.Maximum(i64, j64) }},
		{"sum_i64", func() *tensor.Tensor { return tensor.Sum(i64) }},
		{"sum1_i64", func() *tensor.Tensor { return tensor.Sum(i64, 1) }},
		{"amax_i64", func() *tensor.Tensor { return tensor.Amax(i64, 1) }},
		{"add_i32", func() *tensor.Tensor { return tensor.Add(i32, j32) }},
		{"mul_i32", func() *tensor.Tensor { return tensor.Mul(i32, j32) }},
		{"add_u8", func() *tensor.Tensor { return tensor.Add(u8, v8) }},
		{"max_u8", func() *tensor.Tensor { return tensor.Maximum(u8, v8) }},
		{"sum_u8", func() *tensor.Tensor { return tensor.Sum(u8) }},
		{"eq_u8", func() *tensor.Tensor { return tensor.Eq(u8, v8) }},
		{"add_u8_f32", func() *tensor.Tensor { return tensor.Add(u8, x) }},
		{"add_i64_f32", func() *tensor.Tensor { return tensor.Add(i64, x) }},
		{"all", func() *tensor.Tensor { return tensor.All(m) }},
		{"all_1", func() *tensor.Tensor { return tensor.All(m, 1) }},
		{"amin", func() *tensor.Tensor { return tensor.Amin(x) }},
		{"amin_0", func() *tensor.Tensor { return tensor.Amin(x, 0) }},
		{"prod", func() *tensor.Tensor { return tensor.Prod(x) }},
		{"prod_1", func() *tensor.Tensor { return tensor.Prod(x, 1) }},
		{"mean", func() *tensor.Tensor { return tensor.Mean(x) }},
		{"mean_1", func() *tensor.Tensor { return tensor.Mean(x, 1) }},
		{"std", func() *tensor.Tensor { return tensor.Std(x) }},
		{"std_1", func() *tensor.Tensor { return tensor.Std(x, 1) }},
		{"max_dim0", two(func() (_, _ *tensor.Tensor) { return tensor.Max(x, 0) })},
		{"max_dim1", two(func() (_, _ *tensor.Tensor) { return tensor.Max(x, 1) })},
		{"min_dim1", two(func() (_, _ *tensor.Tensor) { return tensor.Min(x, 1) })},
		{"cumsum_0", func() *tensor.Tensor { return tensor.CumSum(x, 0) }},
		{"cumsum_i64", func() *tensor.Tensor { return tensor.CumSum(i64, 1) }},
		{"argmin_1", func() *tensor.Tensor { return tensor.Argmin(x, 1) }},
		{"sum_t", func() *tensor.Tensor { return tensor.Sum(xt, 1) }},
		{"sum_mid", func() *tensor.Tensor { return tensor.Sum(img, 1) }},
		{"sum_last2", func() *tensor.Tensor { return tensor.Sum(img, 2, 3) }},
		{"mean_f16", func() *tensor.Tensor { return tensor.Mean(h) }},
		{"index_two", func() *tensor.Tensor { return tensor.Index(x, fi, fj) }},
		{"index_rows", func() *tensor.Tensor { return tensor.Index(x, r) }},
		{"index_grid", func() *tensor.Tensor { return tensor.Index(x, c, r) }},
		{"index_few", func() *tensor.Tensor { return tensor.Index(x, k8, k8) }},
		{"index_select_i64", func() *tensor.Tensor { return tensor.IndexSelect(i64, 0, r) }},
		{"index_select_u8", func() *tensor.Tensor { return tensor.IndexSelect(u8, 0, r) }},
		{"index_select_1_f64", func() *tensor.Tensor { return tensor.IndexSelect(x64, 1, r) }},
		{"scatter_0", none(func() { w.ScatterInPlace(0, i64, x) })},
		{"scatter_1", none(func() { w.ScatterInPlace(1, i64, x) })},
		{"scatter_add_0", none(func() { w.ScatterAddInPlace(0, i64, x) })},
		{"scatter_add_1", none(func() { w.ScatterAddInPlace(1, i64, x) })},
		{"index_add_0", none(func() { w.IndexAddInPlace(0, r, x) })},
		{"index_add_1", none(func() { w.IndexAddInPlace(1, r, x) })},
		{"index_copy_0", none(func() { w.IndexCopyInPlace(0, perm, x) })},
		{"topk10", two(func() (_, _ *tensor.Tensor) { return tensor.TopK(x, 10, 1) })},
		{"topk10_flat", two(func() (_, _ *tensor.Tensor) { return tensor.TopK(flat, 10, 0) })},
		{"argsort_0", func() *tensor.Tensor { return tensor.Argsort(x, 0, false) }},
		{"argsort_1", func() *tensor.Tensor { return tensor.Argsort(x, 1, true) }},
		{"sort_flat", two(func() (_, _ *tensor.Tensor) { return tensor.Sort(flat, 0, false) })},
		{"sort_i64", two(func() (_, _ *tensor.Tensor) { return tensor.Sort(i64, 1, false) })},
		{"sort_big", two(func() (_, _ *tensor.Tensor) { return tensor.Sort(big, 1, false) })},
		{"nonzero_f32", func() *tensor.Tensor { return tensor.Nonzero(x) }},
		{"flip_1", func() *tensor.Tensor { return tensor.Flip(x, 1) }},
		{"flip_0", func() *tensor.Tensor { return tensor.Flip(x, 0) }},
		{"where_bc", func() *tensor.Tensor { return tensor.Where(m, x, vec) }},
		{"where_i64", func() *tensor.Tensor { return tensor.Where(m, i64, j64) }},
		{"masked_select_i64", func() *tensor.Tensor { return tensor.MaskedSelect(i64, m) }},
		{"arange", func() *tensor.Tensor { return tensor.Arange(tensor.Float32, 0, float64(n), 1) }},
		{"arange_i64", func() *tensor.Tensor { return tensor.Arange(tensor.Int64, 0, float64(n), 1) }},
		{"linspace", func() *tensor.Tensor { return tensor.Linspace(tensor.Float32, 0, 1, n) }},
		{"eye", func() *tensor.Tensor { return tensor.Eye(tensor.Float32, N) }},
		{"full", func() *tensor.Tensor { return tensor.Full(tensor.Float32, 3, N, N) }},
		{"zeros", func() *tensor.Tensor { return tensor.New(tensor.Float32, N, N) }},
		{"rand", func() *tensor.Tensor { return tensor.Rand(tensor.Float32, g, N, N) }},
		{"randn", func() *tensor.Tensor { return tensor.RandN(tensor.Float32, g, N, N) }},
		{"randint", func() *tensor.Tensor { return tensor.RandInt(g, 0, 1000, N, N) }},
		{"randperm", func() *tensor.Tensor { return tensor.RandPerm(g, n) }},
		{"bernoulli", none(func() { w.FillBernoulli(g, 0.5) })},
		{"uniform", none(func() { w.FillUniform(g, -1, 1) })},
		{"normal", none(func() { w.FillNormal(g, 0, 1) })},
		{"stack", func() *tensor.Tensor { return tensor.Stack(0, x, y) }},
		{"stack_2", func() *tensor.Tensor { return tensor.Stack(2, x, y) }},
		{"clone", func() *tensor.Tensor { return x.Clone() }},
		{"copy_t", none(func() { w.CopyFrom(xt) })},
		{"copy_f64", none(func() { w.CopyFrom(x64) })},
		{"t_clone_f64", func() *tensor.Tensor { return x64.T().Contiguous() }},
		{"t_clone_u8", func() *tensor.Tensor { return u8.T().Contiguous() }},
		{"t_clone_f16", func() *tensor.Tensor { return h.T().Contiguous() }},
		{"expand_contig", func() *tensor.Tensor { return vec.Unsqueeze(1).Expand(N, N).Contiguous() }},
		{"slice_step", func() *tensor.Tensor { return x.Slice(1, 0, N, 2).Contiguous() }},
		{"add_t", func() *tensor.Tensor { return tensor.Add(x, xt) }},
		{"add_tt", func() *tensor.Tensor { return tensor.Add(xt, xt) }},
		{"add_slice", func() *tensor.Tensor { return tensor.Add(x.Slice(1, 0, N, 2), y.Slice(1, 0, N, 2)) }},
		{"exp_t", func() *tensor.Tensor { return tensor.Exp(xt) }},
		{"exp_slice", func() *tensor.Tensor { return tensor.Exp(x.Slice(1, 0, N, 2)) }},
		{"mm", func() *tensor.Tensor { return tensor.MatMul(x, y) }},
		{"mm_t", func() *tensor.Tensor { return tensor.MatMul(x, y.T()) }},
		{"mm_f64", func() *tensor.Tensor { return tensor.MatMul(x64, y64) }},
		{"mm_bf16", func() *tensor.Tensor { return tensor.MatMul(b, b2) }},
		{"mm_f16", func() *tensor.Tensor { return tensor.MatMul(h, h2) }},
		{"mm_i64", func() *tensor.Tensor { return tensor.MatMul(i64, j64) }},
		{"mv", func() *tensor.Tensor { return tensor.MatMul(x, vec) }},
		{"vm", func() *tensor.Tensor { return tensor.MatMul(vec, x) }},
		{"mv_t", func() *tensor.Tensor { return tensor.MatMul(xt, vec) }},
		{"dot", func() *tensor.Tensor { return tensor.MatMul(flat, flat) }},
		{"bmm", func() *tensor.Tensor { return tensor.BMM(q3, k3) }},
		{"mm_small", func() *tensor.Tensor {
			return tensor.MatMul(x.Narrow(0, 0, 8).Narrow(1, 0, 8),
				y.Narrow(0, 0, 8).Narrow(1, 0, 8))
		}},
		{"mm_thin", func() *tensor.Tensor { return tensor.MatMul(x.Narrow(0, 0, 4), y) }},
		{"add_scalar_", none(func() { w.AddScalarInPlace(1) })},
		{"mul_scalar_", none(func() { w.MulScalarInPlace(1) })},
		{"axpy_", none(func() { w.AxpyInPlace(0.1, x) })},
		{"fill_", none(func() { w.Fill(1) })},
		{"zero_", none(func() { w.Zero() })},
		{"equal", none(func() { tensor.Equal(x, x) })},
		{"allclose", none(func() { tensor.AllClose(x, x, 1e-5, 1e-8) })},
		{"add_", none(func() { w.AddInPlace(x) })},
		{"clamp_", none(func() { w.ClampInPlace(-1, 1) })},
		{"exp_", none(func() { w.Fill(0).ExpInPlace() })},
		{"add10", func() *tensor.Tensor { return tensor.Add(ten, ten2) }},
		{"sum10", func() *tensor.Tensor { return tensor.Sum(ten) }},
		{"exp10", func() *tensor.Tensor { return tensor.Exp(ten) }},
		{"amax10", func() *tensor.Tensor { return tensor.Amax(ten, 0) }},
		{"cat10", func() *tensor.Tensor { return tensor.Cat(0, ten, ten2) }},
		{"to10", func() *tensor.Tensor { return ten.To(tensor.Float64) }},
		{"argmax10", func() *tensor.Tensor { return tensor.Argmax(ten, 0) }},
		{"sort10", two(func() (_, _ *tensor.Tensor) { return tensor.Sort(ten, 0, false) })},
		{"item", none(func() { ten.Narrow(0, 3, 1).Item() })},
		{"view10", func() *tensor.Tensor { return ten.View(2, 5) }},
		{"std10", func() *tensor.Tensor { return tensor.Std(ten) }},
		{"where10", func() *tensor.Tensor {
			return tensor.Where(m.Narrow(0, 0, 1).Narrow(1, 0, 10), ten, ten2)
		}},
		{"index10", func() *tensor.Tensor {
			return tensor.IndexSelect(ten, 0, k8.Narrow(0, 0, 1).RemainderInPlace(tensor.Scalar(tensor.Int64, 10)))
		}},
		{"lt", func() *tensor.Tensor { return tensor.Lt(x, y) }},
		{"ge", func() *tensor.Tensor { return tensor.Ge(x, y) }},
		{"or", func() *tensor.Tensor { return tensor.Or(m, m2) }},
		{"keep", func() *tensor.Tensor { return tensor.Keep(tensor.Mean, x, 1) }},
		{"ones", func() *tensor.Tensor { return tensor.Ones(tensor.Float32, n) }},
		{"add_mm", none(func() { w.Zero().AddMMInPlace(x, y) })},
	}
}
