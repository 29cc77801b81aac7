/** Requests an early replacement of an issued certificate, for one that was revoked or whose key has leaked. */
import { Refusal } from '../../model/errors.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Principal } from './find-caller.ts'
import { type ResourceTarget, visible } from './ownership.ts'

interface RenewalTools extends Pick<ControlTools, 'store' | 'log'> {
  readonly managesCertificates: boolean
}

/** The field that marks a certificate until it is replaced. */
export const RENEWAL_ASKED = 'renewal_asked'

/** Resolves once the request is stored; any free node then orders the certificate. */
export async function askRenewal(
  { store, log, managesCertificates }: RenewalTools,
  principal: Principal,
  target: ResourceTarget,
): Promise<void> {
  const { kind } = tlsCertificates
  const name = await store.write(async (writer) => {
    const { fields } = visible(tlsCertificates, principal, target, await writer.resource(kind, target.id))
    const { issued_for: name } = fields
    if (typeof name !== 'string') throw refusal('it was uploaded; upload another in its place')
    if (!managesCertificates) throw refusal('this server orders none: it has no `--acme-directory`')
    // The name is locked before its certificate, as when a new one is stored; otherwise the two could deadlock.
    await writer.certificates.lookAgain([name])
    if (!(await writer.certificates.managedName(name))) throw refusal(`nothing serves \`${name}\` any more`)
    const row = visible(tlsCertificates, principal, target, await writer.lock(kind, target.id))
    if (row.fields.issued_for !== name) throw new Refusal('CONFLICT')
    await writer.replaceFields(row.id, { ...row.fields, [RENEWAL_ASKED]: true })
    return name
  })
  log.info({ certificate: target.id, name, by: principal.id }, 'certificate renewal requested')
}

function refusal(why: string): Refusal {
  return new Refusal('CERTIFICATE_NOT_RENEWABLE', why)
}
