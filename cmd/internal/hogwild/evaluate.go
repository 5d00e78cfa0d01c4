package hogwild

import (
	"context"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// pixels makes bytes of ink numbers around 0, as the original does.
var pixels = data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))

// evaluate returns the average loss over a set, and how many of its digits the network recognises.
func evaluate(ctx context.Context, net *Net, set *data.TensorDataset, batchSize int) (loss float64,
	correct int, err error) {
	loader := data.NewLoader(set, data.Options{BatchSize: batchSize, Transform: pixels})
	defer loader.Close()
	scope := autograd.NewScope()
	nn.Eval(net)
	for batch, err := range loader.Batches(ctx) {
		if err != nil {
			return 0, 0, err
		}
		images, labels := batch[0], batch[1]
		logp := net.Forward(scope.NoGrad(images))
		loss += nn.NLLLoss.Of(logp, labels).Item() * float64(labels.Numel())
		correct += hits(logp.T(), labels)
		scope.Reset()
		batch.Close()
	}
	return loss / float64(max(1, set.Len())), correct, nil
}

// hits counts the rows of logp (n, classes) that are largest at their label.
func hits(logp, labels *tensor.Tensor) int {
	return int(tensor.Eq(tensor.Argmax(logp, 1), labels).Sum())
}
