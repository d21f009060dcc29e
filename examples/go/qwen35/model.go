// Package qwen35 runs Qwen3.5 language models on x86-64 CPUs, by libqwen35.
//
// A Model may be used by many goroutines at once, a Session by one at a time. Strings and
// slices go to the library without being copied; what the library lends is copied.
package qwen35

/*
#cgo LDFLAGS: -lqwen35
#include <stdlib.h>
#include "qwen35.h"
*/
import "C"

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Error is a failure of the library.
type Error struct {
	Status  int32  // negative
	Name    string // as in qwen35.h
	Message string // what failed, on what, and what was expected
}

func (e *Error) Error() string { return e.Message + " (" + e.Name + ")" }

// The statuses that a host tells apart most often, for errors.As and Error.Status.
const (
	StatusInvalidArgument int32 = C.QWEN_ERROR_INVALID_ARGUMENT
	StatusInvalidHandle   int32 = C.QWEN_ERROR_INVALID_HANDLE
	StatusBusy            int32 = C.QWEN_ERROR_BUSY
	StatusIO              int32 = C.QWEN_ERROR_IO
	StatusFormat          int32 = C.QWEN_ERROR_FORMAT
	StatusContextOverflow int32 = C.QWEN_ERROR_CONTEXT_OVERFLOW
	StatusTemplate        int32 = C.QWEN_ERROR_TEMPLATE
)

// do makes a call and fetches the message of its failure, which belongs to the thread.
func do(call func() C.qwen_status) (C.qwen_status, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := call()
	if status >= 0 {
		return status, nil
	}
	return status, &Error{
		Status:  int32(status),
		Name:    C.GoString(C.qwen_status_name(status)),
		Message: C.GoString(C.qwen_last_error()),
	}
}

// text is a string as the library takes it: its own bytes, not a copy.
func text(s string) (*C.char, C.size_t) {
	return *(**C.char)(unsafe.Pointer(&s)), C.size_t(len(s))
}

// ids are tokens as the library takes them, not a copy.
func ids(tokens []int32) (*C.int32_t, C.size_t) {
	if len(tokens) == 0 {
		return nil, 0
	}
	return (*C.int32_t)(unsafe.Pointer(&tokens[0])), C.size_t(len(tokens))
}

// Version is the version of the library.
func Version() string { return C.GoString(C.qwen_version()) }

// ModelOptions say how to open a model. The zero value is the default.
type ModelOptions struct {
	Threads       uint32 // that compute; 0: as many as the process may use
	TokenizerOnly bool   // without weights
	ISA           ISA
	Weights       Weights
	Compute       Compute
	// Memory for beginnings that sessions share, see SessionOptions.
	PrefixCacheBytes uint64
}

// ISA is the instruction set that computes.
type ISA int32

// The instruction sets; the zero value is the widest that the CPU has.
const (
	ISAAuto   ISA = C.QWEN_ISA_AUTO
	ISAScalar ISA = C.QWEN_ISA_SCALAR
	ISAAVX2   ISA = C.QWEN_ISA_AVX2
	ISAAVX512 ISA = C.QWEN_ISA_AVX512
)

// Weights is what weight matrices are made into.
type Weights int32

// The formats.
const (
	WeightsStored Weights = C.QWEN_WEIGHTS_STORED
	WeightsINT8   Weights = C.QWEN_WEIGHTS_INT8
	WeightsINT4   Weights = C.QWEN_WEIGHTS_INT4
)

// Compute is how products with weights are computed.
type Compute int32

// The ways; the zero value is exact for weights as stored and fast for quantized ones.
const (
	ComputeAuto  Compute = C.QWEN_COMPUTE_AUTO
	ComputeExact Compute = C.QWEN_COMPUTE_EXACT
	ComputeFast  Compute = C.QWEN_COMPUTE_FAST
)

// Model is an opened checkpoint.
type Model struct {
	handle unsafe.Pointer // *C.qwen_model, nil when closed
}

func (m *Model) c() *C.qwen_model { return (*C.qwen_model)(atomic.LoadPointer(&m.handle)) }

// Open opens the checkpoint in a Hugging Face folder. Nil options are the default.
func Open(path string, options *ModelOptions) (*Model, error) {
	if found := C.qwen_abi_version(); found != C.QWEN_ABI_VERSION {
		return nil, fmt.Errorf("libqwen35 has ABI %d, this package needs %d", found, C.QWEN_ABI_VERSION)
	}
	raw := C.qwen_model_options{struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_model_options{}))}
	if options != nil {
		raw.threads = C.uint32_t(options.Threads)
		raw.isa = C.qwen_isa(options.ISA)
		raw.weights = C.qwen_weights(options.Weights)
		raw.compute = C.qwen_compute(options.Compute)
		raw.prefix_cache_bytes = C.uint64_t(options.PrefixCacheBytes)
		if options.TokenizerOnly {
			raw.flags = C.QWEN_MODEL_TOKENIZER_ONLY
		}
	}
	var handle *C.qwen_model
	data, length := text(path)
	_, err := do(func() C.qwen_status { return C.qwen_model_open(data, length, &raw, &handle) })
	runtime.KeepAlive(path)
	if err != nil {
		return nil, err
	}
	m := &Model{handle: unsafe.Pointer(handle)}
	runtime.SetFinalizer(m, (*Model).Close)
	return m, nil
}

// Close frees the model. Sessions that are open keep what they need.
func (m *Model) Close() {
	C.qwen_model_free((*C.qwen_model)(atomic.SwapPointer(&m.handle, nil)))
	runtime.SetFinalizer(m, nil)
}

// ModelInfo says what a model is.
type ModelInfo struct {
	HasWeights, HasChatTemplate      bool
	TokenCount, VocabSize            int
	ContextLimit, HiddenSize, Layers int
	Threads                          int
	WeightBytes                      uint64
	ISA                              ISA
	Weights                          Weights
	Compute                          Compute
}

// Info says what the model is.
func (m *Model) Info() (ModelInfo, error) {
	raw := C.qwen_model_info{struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_model_info{}))}
	_, err := do(func() C.qwen_status { return C.qwen_model_get_info(m.c(), &raw) })
	runtime.KeepAlive(m)
	return ModelInfo{
		HasWeights: raw.has_weights != 0, HasChatTemplate: raw.has_chat_template != 0,
		TokenCount: int(raw.token_count), VocabSize: int(raw.vocab_size),
		ContextLimit: int(raw.context_limit), HiddenSize: int(raw.hidden_size),
		Layers: int(raw.layer_count), Threads: int(raw.threads),
		WeightBytes: uint64(raw.weight_bytes),
		ISA:         ISA(raw.isa), Weights: Weights(raw.weights), Compute: Compute(raw.compute),
	}, err
}

// sizedIDs calls a function of the two-call rule for tokens.
func sizedIDs(call func(*C.int32_t, C.size_t, *C.size_t) C.qwen_status) ([]int32, error) {
	var needed C.size_t
	if _, err := do(func() C.qwen_status { return call(nil, 0, &needed) }); err != nil {
		return nil, err
	}
	tokens := make([]int32, int(needed))
	if needed > 0 {
		data, length := ids(tokens)
		if _, err := do(func() C.qwen_status { return call(data, length, &needed) }); err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// sizedText does the same for text.
func sizedText(call func(*C.char, C.size_t, *C.size_t) C.qwen_status) (string, error) {
	var needed C.size_t
	if _, err := do(func() C.qwen_status { return call(nil, 0, &needed) }); err != nil {
		return "", err
	}
	if needed == 0 {
		return "", nil
	}
	bytes := make([]byte, int(needed))
	data := (*C.char)(unsafe.Pointer(&bytes[0]))
	if _, err := do(func() C.qwen_status { return call(data, needed, &needed) }); err != nil {
		return "", err
	}
	return *(*string)(unsafe.Pointer(&bytes)), nil // nothing else holds the bytes
}

// Tokenize gives the ids of a text in which nothing is a control token.
func (m *Model) Tokenize(s string) ([]int32, error) { return m.tokenize(s, 0) }

// TokenizeAdded does the same, but spellings such as "<|im_end|>" become those tokens. It is
// not for text that a user wrote.
func (m *Model) TokenizeAdded(s string) ([]int32, error) {
	return m.tokenize(s, C.QWEN_TEXT_ADDED_TOKENS)
}

func (m *Model) tokenize(s string, flags C.uint32_t) ([]int32, error) {
	data, length := text(s)
	defer runtime.KeepAlive(m)
	defer runtime.KeepAlive(s)
	return sizedIDs(func(to *C.int32_t, room C.size_t, needed *C.size_t) C.qwen_status {
		return C.qwen_tokenize(m.c(), data, length, flags, to, room, needed)
	})
}

// Detokenize gives the exact bytes of tokens, without special tokens if skipSpecial.
func (m *Model) Detokenize(tokens []int32, skipSpecial bool) (string, error) {
	var flags C.uint32_t
	if skipSpecial {
		flags = C.QWEN_TEXT_SKIP_SPECIAL
	}
	data, count := ids(tokens)
	defer runtime.KeepAlive(m)
	return sizedText(func(to *C.char, room C.size_t, needed *C.size_t) C.qwen_status {
		return C.qwen_detokenize(m.c(), data, count, flags, to, room, needed)
	})
}

// Message is one of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Chat is a conversation as in the OpenAI API.
type Chat struct {
	Messages []Message         `json:"messages"`
	Tools    []json.RawMessage `json:"tools,omitempty"`
	// Nil: the template decides.
	EnableThinking *bool `json:"enable_thinking,omitempty"`
}

// RenderChat writes a conversation by the checkpoint's template.
func (m *Model) RenderChat(chat Chat) (string, error) {
	request, err := json.Marshal(chat)
	if err != nil {
		return "", err
	}
	data := (*C.char)(unsafe.Pointer(&request[0]))
	defer runtime.KeepAlive(m)
	return sizedText(func(to *C.char, room C.size_t, needed *C.size_t) C.qwen_status {
		return C.qwen_chat_render(m.c(), data, C.size_t(len(request)), 0, to, room, needed)
	})
}
