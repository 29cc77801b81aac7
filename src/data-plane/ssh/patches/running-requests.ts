/** Answers requests about a terminal whose command runs (RFC 4254 §5.4): the library answers only those that come before it. */
import type { Incoming } from 'ssh2'

/** Refuses them, since there is nothing to ask for any more. Dropbear's keep-alives are such requests, and any answer will do. */
export function answerRunning({ _protocol: protocol, _chanMgr: channels }: Incoming): void {
  const { _handlers: handlers } = protocol
  const handle = handlers.CHANNEL_REQUEST
  handlers.CHANNEL_REQUEST = (...request) => {
    const [, number, , isReplyWanted] = request
    const session = channels.get(number)
    // Read first, because the request itself may start the command. A visitor's channel has none of this.
    const isUnanswered = session?._channel !== undefined || session?._ending === true
    handle(...request)
    if (!isReplyWanted || !isUnanswered || !session?._chanInfo) return
    const { id, state } = session._chanInfo.outgoing
    // Nothing may follow our close.
    if (state === 'open' || state === 'eof') protocol.channelFailure(id)
  }
}
