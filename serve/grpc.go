package serve

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
	"github.com/bitcnn/bitcnn/serve/internal/tensor"
)

// RegisterGRPC registers the service of the protocol, inference.GRPCInferenceService. A server
// of gRPC that is not of Serve needs GRPCOptions.
func (s *Server) RegisterGRPC(r grpc.ServiceRegistrar) {
	pb.RegisterGRPCInferenceServiceServer(counted{r, s}, grpcServer{s: s})
}

// GRPCOptions are options of a server of gRPC that serves this: its limits, what counts the memory
// of messages and checks tokens before they are read, and interceptors that survive panics. Services
// that others register on it are not counted.
func (s *Server) GRPCOptions() []grpc.ServerOption {
	return append(tracedGRPC(s.opts.Traces),
		grpc.MaxRecvMsgSize(int(s.opts.MaxBody)),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.InTapHandle(s.tapped),
		grpc.ForceServerCodecV2(newCodec()),
		// No call gets more of a message than it has asked for but this; windows that grow with the
		// speed of a client would be memory that nobody counts.
		grpc.StaticStreamWindowSize(windowBytes),
		grpc.StaticConnWindowSize(1<<20),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo,
			h grpc.UnaryHandler) (answer any, err error) {
			err = s.guard(ctx, info.FullMethod, modelOf(request), func(ctx context.Context) (err error) {
				answer, err = h(ctx, request)
				return err
			})
			return answer, err
		}),
		grpc.StreamInterceptor(func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
			h grpc.StreamHandler) error {
			return s.guard(stream.Context(), info.FullMethod, "", func(ctx context.Context) error {
				return h(service, named{stream, ctx})
			})
		}),
	)
}

// maxStreams is the number of calls at the same time on a connection.
const maxStreams = 128

// open are the calls that need no token.
var openCalls = map[string]bool{
	pb.GRPCInferenceService_ServerLive_FullMethodName:  true,
	pb.GRPCInferenceService_ServerReady_FullMethodName: true,
	"/grpc.health.v1.Health/Check":                     true,
	watchMethod:                                        true,
}

const watchMethod = "/grpc.health.v1.Health/Watch"

// checkToken checks the token of a call of gRPC.
func (s *Server) checkToken(method string, authorization []string) error {
	if openCalls[method] {
		return nil
	}
	return s.tokens.check(cmp.Or(authorization...))
}

// modelOf returns the name of the model that a message of gRPC is about, or nothing.
func modelOf(message any) string {
	switch m := message.(type) {
	case interface{ GetModelName() string }:
		return m.GetModelName()
	case interface{ GetName() string }:
		return m.GetName()
	}
	return ""
}

// guard calls a call of gRPC about a model, or none, if its token is good.
func (s *Server) guard(ctx context.Context, method, model string, call func(context.Context) error) (err error) {
	if a := identityOf(ctx); a != nil {
		a.model = model
	} else { // a stream, or a service that is not counted
		var end func(error)
		ctx, end = s.call(ctx)
		defer func() { end(err) }()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
			s.log.ErrorContext(ctx, "panic", "method", method, "panic", p, "stack", string(debug.Stack()))
		}
		if err != nil {
			f := classified(err)
			if f.code == codes.Internal {
				s.log.ErrorContext(ctx, "request failed", "method", method, "error", f)
			}
			err = f.GRPCStatus().Err()
		}
	}()
	c := callOf(ctx)
	if c == nil { // by ServeHTTP of gRPC, where nothing is tapped
		err = s.checkToken(method, metadata.ValueFromIncomingContext(ctx, "authorization"))
	} else {
		err = c.refused // of services that are not counted
	}
	if err != nil {
		return err
	}
	return call(ctx)
}

// grpcServer answers the calls of the protocol.
type grpcServer struct {
	pb.UnimplementedGRPCInferenceServiceServer
	s *Server
}

func (g grpcServer) ServerLive(context.Context, *pb.ServerLiveRequest) (*pb.ServerLiveResponse, error) {
	return &pb.ServerLiveResponse{Live: true}, nil
}

func (g grpcServer) ServerReady(context.Context, *pb.ServerReadyRequest) (*pb.ServerReadyResponse, error) {
	return &pb.ServerReadyResponse{Ready: g.s.Ready()}, nil
}

func (g grpcServer) ModelReady(_ context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	m, err := g.s.repository.acquire(r.Name, r.Version)
	if err != nil {
		if classified(err).code == codes.Unavailable {
			return &pb.ModelReadyResponse{}, nil
		}
		return nil, err
	}
	m.release()
	return &pb.ModelReadyResponse{Ready: !g.s.draining.Load()}, nil
}

func (g grpcServer) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	return &pb.ServerMetadataResponse{Name: serverName, Version: bitcnn.Version(), Extensions: protocolExtensions}, nil
}

func (g grpcServer) ModelMetadata(_ context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	m, err := g.s.repository.acquire(r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	defer m.release()
	describe := func(ports []port) []*pb.ModelMetadataResponse_TensorMetadata {
		var list []*pb.ModelMetadataResponse_TensorMetadata
		for _, p := range ports {
			list = append(list, &pb.ModelMetadataResponse_TensorMetadata{Name: p.Name, Datatype: p.datatype, Shape: p.shape(-1)})
		}
		return list
	}
	return &pb.ModelMetadataResponse{
		Name: m.name, Versions: g.s.repository.versions(r.Name), Platform: platform,
		Inputs: describe(m.inputs), Outputs: describe(m.outputs),
	}, nil
}

func (g grpcServer) ModelConfig(_ context.Context, r *pb.ModelConfigRequest) (*pb.ModelConfigResponse, error) {
	m, err := g.s.repository.acquire(r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	defer m.release()
	return &pb.ModelConfigResponse{Config: m.config()}, nil
}

func (g grpcServer) ModelStatistics(_ context.Context,
	r *pb.ModelStatisticsRequest) (*pb.ModelStatisticsResponse, error) {
	return g.s.statistics(r.Name, r.Version)
}

func (g grpcServer) RepositoryIndex(_ context.Context,
	r *pb.RepositoryIndexRequest) (*pb.RepositoryIndexResponse, error) {
	answer := &pb.RepositoryIndexResponse{}
	for _, i := range g.s.repository.index(r.Ready) {
		answer.Models = append(answer.Models, &pb.RepositoryIndexResponse_ModelIndex{
			Name: i.Name, Version: i.Version, State: i.State, Reason: i.Reason,
		})
	}
	return answer, nil
}

func (g grpcServer) RepositoryModelLoad(ctx context.Context,
	r *pb.RepositoryModelLoadRequest) (*pb.RepositoryModelLoadResponse, error) {
	if err := g.s.control(len(r.Parameters)); err != nil {
		return nil, err
	}
	b, done := g.s.bodyOf(ctx)
	defer done()
	return &pb.RepositoryModelLoadResponse{}, g.s.load(ctx, b.client, r.ModelName)
}

func (g grpcServer) RepositoryModelUnload(ctx context.Context,
	r *pb.RepositoryModelUnloadRequest) (*pb.RepositoryModelUnloadResponse, error) {
	// Clients send unload_dependents, which no model has.
	if err := g.s.control(0); err != nil {
		return nil, err
	}
	return &pb.RepositoryModelUnloadResponse{}, g.s.repository.unload(ctx, r.ModelName)
}

func (g grpcServer) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	s := g.s
	b, done := s.bodyOf(ctx)
	defer done()
	if err := s.begin(b.client); err != nil {
		return nil, err
	}
	defer s.end(b.client)
	began := time.Now()
	m, err := s.repository.acquire(r.ModelName, r.ModelVersion)
	if err != nil {
		return nil, err
	}
	defer m.release()
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	answer, err := m.inferMessage(ctx, &b.hold, r)
	m.counters.done(overGRPC, time.Since(began), err)
	return answer, err
}

// ModelStreamInfer answers one request after the other; an error is the answer to its request.
func (g grpcServer) ModelStreamInfer(stream grpc.BidiStreamingServer[pb.ModelInferRequest,
	pb.ModelStreamInferResponse]) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		began, answer := time.Now(), &pb.ModelStreamInferResponse{}
		answer.InferResponse, err = g.ModelInfer(stream.Context(), r)
		g.s.logCall(stream.Context(), r.ModelName, began, err)
		if err != nil {
			answer.ErrorMessage = classified(err).Error()
			answer.InferResponse = &pb.ModelInferResponse{Id: r.Id, ModelName: r.ModelName}
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// inferMessage runs a model on a request of gRPC. Outputs are raw, whatever the inputs are.
func (m *model) inferMessage(ctx context.Context, h *hold, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	switch {
	case len(r.Inputs) > len(m.inputs):
		return nil, badf("the request has %d inputs, want at most %d", len(r.Inputs), len(m.inputs))
	case len(r.Outputs) > len(m.outputs):
		return nil, badf("the request has %d outputs, want at most %d", len(r.Outputs), len(m.outputs))
	}
	if err := tensor.CheckID(r.Id); err != nil {
		return nil, failure{codes.InvalidArgument, err}
	}
	request, err := requestOf(r)
	if err != nil {
		return nil, failure{codes.InvalidArgument, err}
	}
	response, err := m.infer(ctx, h, request, func() {})
	if err != nil {
		return nil, err
	}
	answer := &pb.ModelInferResponse{ModelName: m.name, ModelVersion: m.version, Id: r.Id}
	for _, t := range response.Outputs {
		answer.Outputs = append(answer.Outputs, &pb.ModelInferResponse_InferOutputTensor{Name: t.Name, Datatype: t.Datatype,
			Shape: t.Shape})
		answer.RawOutputContents = append(answer.RawOutputContents, t.Data)
	}
	return answer, nil
}

// requestOf reads a request of gRPC.
func requestOf(r *pb.ModelInferRequest) (*tensor.Request, error) {
	raw := len(r.RawInputContents) > 0
	if raw && len(r.RawInputContents) != len(r.Inputs) {
		return nil, fmt.Errorf("%d elements in raw_input_contents, and %d inputs", len(r.RawInputContents), len(r.Inputs))
	}
	request := &tensor.Request{ID: r.Id}
	for i, in := range r.Inputs {
		t := tensor.Tensor{Name: in.GetName(), Datatype: in.GetDatatype(), Shape: in.GetShape()}
		switch {
		case in.GetParameters()["shared_memory_region"] != nil:
			return nil, fmt.Errorf("input %s: %w", text.Quote(t.Name), tensor.ErrShared)
		case raw && in.GetContents() != nil:
			return nil, fmt.Errorf("input %s has both contents and raw_input_contents; want one of them", text.Quote(t.Name))
		case raw:
			t.Data = r.RawInputContents[i]
		default:
			t.Read = func(dst []byte) ([]byte, error) { return appendContents(dst, t.Datatype, in.GetContents()) }
		}
		request.Inputs = append(request.Inputs, t)
	}
	for _, out := range r.Outputs {
		if out.GetParameters()["shared_memory_region"] != nil {
			return nil, fmt.Errorf("output %s: %w", text.Quote(out.GetName()), tensor.ErrShared)
		}
		o := tensor.Output{Name: out.GetName(), Binary: true}
		if p := out.GetParameters()["classification"]; p != nil {
			if p.GetInt64Param() < 1 || p.GetInt64Param() > math.MaxInt32 {
				return nil, fmt.Errorf("output %s: classification needs a number of classes", text.Quote(o.Name))
			}
			o.Classes = int(p.GetInt64Param())
		}
		request.Outputs = append(request.Outputs, o)
	}
	return request, nil
}

// appendContents appends the elements of a tensor that stand in the list of its type.
func appendContents(dst []byte, datatype string, c *pb.InferTensorContents) ([]byte, error) {
	switch datatype {
	case tensor.Uint8:
		for i, v := range c.GetUintContents() {
			if v > math.MaxUint8 {
				return dst, fmt.Errorf("element %d is %d, which %s cannot hold", i, v, datatype)
			}
			dst = append(dst, byte(v))
		}
	case tensor.Int8:
		for i, v := range c.GetIntContents() {
			if v < math.MinInt8 || v > math.MaxInt8 {
				return dst, fmt.Errorf("element %d is %d, which %s cannot hold", i, v, datatype)
			}
			dst = append(dst, byte(v))
		}
	case tensor.Int32:
		for _, v := range c.GetIntContents() {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	case tensor.Int64:
		for _, v := range c.GetInt64Contents() {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		}
	case tensor.FP32:
		for _, v := range c.GetFp32Contents() {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	default:
		return dst, fmt.Errorf("datatype %s is not supported", text.Quote(datatype))
	}
	return dst, nil
}
