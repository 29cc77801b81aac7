/** Tries again now to get the certificate of a name, for somebody who has fixed what was in the way. */

import { Refusal } from '../../model/errors.ts'
import { readName } from '../../model/hostport.ts'
import type { Principal } from '../records/find-caller.ts'
import { type ResourceTarget, visible } from '../records/ownership.ts'
import type { Resource } from '../resources/resource.ts'
import type { ControlTools } from '../store/control-tools.ts'
import { readState, statusOf } from './name-state.ts'
import { tell } from './name-store.ts'
import { orderRoom } from './order-pace.ts'

interface AskedTryTools extends Pick<ControlTools, 'store' | 'now' | 'log'> {
  readonly managesCertificates: boolean
  readonly ordersPerHour: number
}

/** The least time between two tries of a name that somebody asked for, in milliseconds: authorities count failures. */
const LEAST_PAUSE_MS = 60_000

/**
 * Resolves once the try is stored; a free node begins it within seconds. One that is under way counts as the one that is asked
 * for. An asked try takes of the orders of the hour only what renewals may take.
 */
export async function tryAgain(
  { store, now, log, managesCertificates, ordersPerHour }: AskedTryTools,
  principal: Principal,
  resource: Resource,
  target: ResourceTarget,
): Promise<void> {
  const { kind } = resource
  const name = await store.write(async (writer) => {
    const { fields } = visible(resource, principal, target, await writer.resource(kind, target.id))
    const name = readName(String(fields.domain))
    if (!fields.certificate_management_policy) throw refusal(`\`${name}\` has no \`certificate_management_policy\``)
    if (!managesCertificates) throw refusal('this server orders no certificates: it has no `--acme-directory`')
    const managed = await writer.certificates.managedName(name)
    const state = readState(managed?.state ?? '{}')
    const status = statusOf(state, now())
    if (!managed || !status.provisioning_job)
      throw refusal(`no order of \`${name}\` waits; to replace its certificate, renew that`)
    const waitMs = (state.askedAt ?? 0) + LEAST_PAUSE_MS - now()
    if (waitMs > 0) throw tooSoon('a try for this name was asked for within the last minute', waitMs)
    const { paced } = await orderRoom(writer.certificates, ordersPerHour)
    if (!state.order && paced === 0) throw tooSoon('the orders of this hour are needed for other names', LEAST_PAUSE_MS)
    const asked = JSON.stringify({ ...state, askedAt: now() })
    const isHastened = await writer.certificates.hasten(name, { before: managed.state, after: asked })
    if (isHastened) await tell(writer, target.id, state.certificateId ?? null, status)
    return name
  })
  log.info({ name, by: principal.id }, 'another try for a certificate requested')
}

function refusal(why: string): Refusal {
  return new Refusal('CERTIFICATE_NOT_RENEWABLE', why)
}

function tooSoon(why: string, waitMs: number): Refusal {
  const headers = { 'retry-after': String(Math.ceil(waitMs / 1000)) }
  return new Refusal('RATE_LIMITED', `${why}; wait as \`Retry-After\` says`, { headers })
}
