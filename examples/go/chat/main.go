// A conversation: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]. Ctrl-C cancels an answer.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"libqwen35/qwen35"
)

func number(at, otherwise int) int {
	if len(os.Args) <= at {
		return otherwise
	}
	value, err := strconv.Atoi(os.Args[at])
	if err != nil {
		fail(err)
	}
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "chat:", err)
	os.Exit(1)
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 4 {
		fmt.Fprintln(os.Stderr, "usage: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]")
		os.Exit(2)
	}
	most, percent := number(2, 64), number(3, 70)
	model, err := qwen35.Open(os.Args[1], nil)
	if err != nil {
		fail(err)
	}
	defer model.Close()
	session, err := model.NewSession(&qwen35.SessionOptions{Sampling: &qwen35.Sampling{
		Preset:      qwen35.PresetGreedy, // no penalties
		Temperature: qwen35.Some(float32(percent) / 100),
		TopK:        qwen35.Some[uint32](40),
	}})
	if err != nil {
		fail(err)
	}
	defer session.Close()
	talk, err := session.NewConversation(&qwen35.ConversationOptions{
		Thinking:  qwen35.Some(false),
		MaxTokens: uint32(most),
	})
	if err != nil {
		fail(err)
	}
	defer talk.Close()
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		_, err := talk.Ask(ctx, input.Text(), func(piece string) error {
			_, err := fmt.Print(piece)
			return err
		})
		stop()
		if err != nil && !errors.Is(err, context.Canceled) {
			fail(err)
		}
		fmt.Println()
	}
}
