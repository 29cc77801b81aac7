/** Answers the calls of an authenticated agent, from a table with one entry for each. */
import { Secret } from '../../lib/secrets/secret.ts'
import { answer, type Message, readMessage } from '../../link/wire/agent-rpc.ts'
import { buildBindAnswer, parseBind } from '../../link/wire/messages/bind.ts'
import { echoOptions } from '../../link/wire/messages/bind-options.ts'
import { buildAnswer } from '../../link/wire/messages/error-text.ts'
import { MessageFields } from '../../link/wire/messages/message-fields.ts'
import {
  buildLabelAnswer,
  parseLabelRequest,
  parsePatch,
  parseUnbind,
  unbindAnswer,
} from '../../link/wire/messages/tunnel-messages.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import { MESSAGE_BYTES, UNAUTHENTICATED_BYTES } from '../../link/wire/wire-bounds.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { refusals } from '../../model/agent-errors.ts'
import { BindRefusal, refusalText } from './interfaces.ts'
import type { LabelIds } from './label-ids.ts'
import type { ListenerContext } from './listener-context.ts'
import type { LiveSession, Tunnel } from './session-types.ts'
import { boundTexts } from './tunnel-bounds.ts'

/** How many long messages one session may have in transit; further ones must be short. */
const LONG_MESSAGES = 8

export class AgentCalls {
  readonly #session: LiveSession
  readonly #labelIds: LabelIds
  readonly #listener: ListenerContext
  #reading = 0

  constructor(session: LiveSession, labelIds: LabelIds, listener: ListenerContext) {
    this.#session = session
    this.#labelIds = labelIds
    this.#listener = listener
  }

  /** Serves one call, whose type has been read; resolves when it is answered. */
  async serve(stream: WireStream, type: number): Promise<void> {
    const run = this.#calls.get(type)
    if (!run) {
      answer(stream, buildAnswer(refusalText(refusals.unknownCall(type))))
      return
    }
    const maxBytes = this.#reading < LONG_MESSAGES ? MESSAGE_BYTES : UNAUTHENTICATED_BYTES
    this.#reading++
    const message = await new Promise<Message | WireError>((resolve) => readMessage(stream, resolve, { maxBytes }))
    this.#reading--
    const { reply, tunnel } = await this.#run(run, message, maxBytes)
    // Nobody gets the answer, so undo the call: an agent that asks again must not find the name taken by its own tunnel.
    if (tunnel && stream.isClosed) this.#stop(tunnel)
    answer(stream, reply)
  }

  async #run(run: Call, message: Message | WireError, maxBytes: number): Promise<Done> {
    try {
      const result = message instanceof WireError ? message : await run(message)
      if (result instanceof BindRefusal) return refusalReply(result)
      if (!(result instanceof WireError)) return result
      const isTooLarge = result.code === 'message_too_large'
      return refusalReply(isTooLarge ? refusals.messageTooLarge(maxBytes) : refusals.callInvalid(result.message))
    } catch (error) {
      this.#listener.log.error({ session: this.#session.id, error }, 'agent call failed')
      return refusalReply(refusals.broken())
    }
  }

  readonly #calls = new Map<number, Call>([
    [streamTypes.bind, (message) => this.#bind(message)],
    [streamTypes.unbind, (message) => this.#unbind(message)],
    [streamTypes.startTunnelWithLabel, (message) => this.#startLabels(message)],
    [streamTypes.patchTunnel, (message) => this.#patch(message)],
  ])

  async #bind(message: Message): Promise<Result> {
    const request = parseBind(message)
    if (request instanceof WireError) return request
    const policy = MessageFields.parse(message, (fields) => fields.object('Extra').text('IPPolicyRef'))
    if (policy instanceof WireError) return policy
    // Old agents send this; it cannot be honoured, so the bind is refused.
    if (policy !== '') return refusals.ipPolicyRef()
    const bound = await this.#listener.online.bind(this.#session, request)
    if (bound instanceof BindRefusal) return bound
    const { tunnel, address, url, token } = bound
    const { host, port } = address
    const reply = buildBindAnswer({
      id: tunnel.wireId,
      url,
      proto: request.proto,
      opts: echoOptions(request.proto, request.opts, { host, url, ...(port !== undefined && { port }) }),
      token: new Secret(token),
      tunnelId: tunnel.id,
    })
    return { reply, tunnel }
  }

  async #startLabels(message: Message): Promise<Result> {
    const request = parseLabelRequest(message)
    if (request instanceof WireError) return request
    const tunnel = await this.#listener.online.startLabels(this.#session, request, this.#labelIds)
    if (tunnel instanceof BindRefusal) return tunnel
    return { reply: buildLabelAnswer(tunnel.id), tunnel }
  }

  /** Agents repeat this call, so a tunnel that is not there counts as ended. */
  #unbind(message: Message): Result {
    const request = parseUnbind(message)
    if (request instanceof WireError) return request
    const { tunnels } = this.#session
    const tunnel = tunnels.get(request.id) ?? this.#labelIds.findEnding(request.id, tunnels.values())
    this.#labelIds.ended(request.id)
    if (tunnel) this.#stop(tunnel)
    return { reply: unbindAnswer }
  }

  #patch(message: Message): Result {
    const request = parsePatch(message)
    if (request instanceof WireError) return request
    const tunnel = this.#session.tunnels.values().find(({ id }) => id === request.tunnelId)
    if (!tunnel) return refusals.noSuchTunnel(request.tunnelId)
    if (request.poolingEnabled && !tunnel.poolMember) {
      return refusals.bindInvalid('it cannot begin to share its address while it is online; stop it and start it again')
    }
    if (request.trafficPolicy !== null) {
      return refusals.bindInvalid('its traffic policy cannot change while it is online; stop it and start it again')
    }
    const fault = boundTexts(request)
    if (fault) return fault
    tunnel.name = request.name ?? tunnel.name
    tunnel.description = request.description ?? tunnel.description
    tunnel.metadata = request.metadata ?? tunnel.metadata
    tunnel.updatedAt = this.#listener.now()
    this.#listener.online.registry.tunnelChanged(tunnel)
    return { reply: buildAnswer() }
  }

  #stop(tunnel: Tunnel): void {
    this.#labelIds.ended(tunnel.id)
    this.#listener.online.unbind(tunnel)
  }
}

/** The answer to a call, and the tunnel it created. */
interface Done {
  readonly reply: Message
  readonly tunnel?: Tunnel
}

type Result = Done | WireError | BindRefusal

type Call = (message: Message) => Result | Promise<Result>

function refusalReply(refusal: BindRefusal): Done {
  return { reply: buildAnswer(refusalText(refusal)) }
}
