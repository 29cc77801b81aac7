/** Label tunnels: an agent serves every tunnel group whose labels its tunnel carries. */
import type { LabelMessage } from '../../link/wire/messages/tunnel-messages.ts'
import { mayBindLabel } from '../../model/acl.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { Binding } from './bind-tunnel.ts'
import { BindRefusal } from './interfaces.ts'
import type { LabelIds } from './label-ids.ts'
import { sessionCredential } from './session-credential.ts'
import type { LiveSession, Tunnel } from './session-types.ts'
import { boundTexts, MAX_TUNNELS } from './tunnel-bounds.ts'

/** The same bounds as those of a tunnel group, which must be able to name every label. */
const MAX_LABELS = 64
const MAX_LABEL_BYTES = 255

export async function startLabelTunnel(
  session: LiveSession,
  request: LabelMessage,
  labelIds: LabelIds,
  { control, registry, ids, now, log }: Pick<Binding, 'control' | 'registry' | 'ids' | 'now' | 'log'>,
): Promise<Tunnel | BindRefusal> {
  const { labels, metadata, forwardsTo, forwardsProto } = request
  const fault = faultOf(session, request) ?? boundTexts(request)
  if (fault) return fault
  const release = session.tunnels.reserve('')
  try {
    const credential = await sessionCredential(session, { control, log })
    if (credential instanceof BindRefusal) return credential
    const { acl } = credential
    // each label needs a rule that allows it.
    const denied = Object.entries(labels).find(([key, value]) => !mayBindLabel(acl, key, value))
    if (denied) return refusals.labelNotAllowed(session.credentialId, denied.join('='))
    const { id, startedAt = now() } = labelIds.assign(labels, session.tunnels.values(), () => ids.next('tn_'))
    const tunnel: Tunnel = {
      id,
      wireId: id,
      session,
      startedAt,
      forwardsTo,
      httpVersion: forwardsProto === 'http2' ? 2 : 1,
      labels,
      metadata,
      name: '',
      description: '',
      updatedAt: startedAt,
      close() {},
      handOver() {},
    }
    await registry.startTunnel(tunnel)
    return tunnel
  } finally {
    release?.()
  }
}

function faultOf(session: LiveSession, { labels }: LabelMessage): BindRefusal | undefined {
  const pairs = Object.entries(labels)
  if (pairs.length === 0) return refusals.noLabels()
  if (pairs.length > MAX_LABELS) return refusals.bindInvalid(`it has more than ${MAX_LABELS} labels`)
  for (const [key, value] of pairs) {
    const longest = Math.max(Buffer.byteLength(key), Buffer.byteLength(value))
    if (longest > MAX_LABEL_BYTES) return refusals.bindInvalid(`a label is longer than ${MAX_LABEL_BYTES} bytes`)
    if (key === '' || value === '' || `${key}${value}`.includes('=')) {
      return refusals.bindInvalid('a label needs a key and a value, and neither may have a `=`')
    }
  }
  if (session.tunnels.size >= MAX_TUNNELS) return refusals.tooManyTunnels(MAX_TUNNELS)
  return undefined
}
