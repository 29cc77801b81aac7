/** Opens what a data plane keeps of the control plane's records: who may connect, who has logged in, and certificates. */
import { Challenges } from '../../data-plane/edge/acme-challenges.ts'
import { Certificates } from '../../data-plane/edge/served-certificates.ts'
import { CachedLogins } from '../../data-plane/mirrored/cached-logins.ts'
import { IngressNames } from '../../data-plane/mirrored/ingress-names.ts'
import { MirroredMap } from '../../data-plane/mirrored/mirrored-map.ts'
import { Restrictions } from '../../data-plane/mirrored/part-restrictions.ts'
import { UploadedCertificates } from '../../data-plane/mirrored/uploaded-certificates.ts'
import { RefusedAddresses } from '../../lib/net/refused-addresses.ts'
import { linkedLogins } from '../../link/planes/login-calls.ts'
import type { NameChallenge, PlaneCalls } from '../../link/planes/plane-calls.ts'
import { sessionSecrets } from '../../modules/login/session-secret.ts'
import type { OpeningPlane } from './opening-plane.ts'

export function openMirrors({ control, authority, sealer, now, log, opened }: OpeningPlane) {
  // Who may connect at all (D64), and who has logged in.
  const refused = new RefusedAddresses({ log })
  opened.defer(() => refused.close())
  const restrictions = new Restrictions({ refused })
  const { isOurs } = sessionSecrets(sealer)
  const logins = new CachedLogins({ rows: linkedLogins(() => control), isOurs, now, log })
  opened.defer(() => logins.close())

  // Certificates: uploaded ones, else leaves of our own authority.
  const certificates = new Certificates({ authority, now })
  const uploaded = new UploadedCertificates((served) => certificates.replace(served))
  const ingresses = new IngressNames()
  const names = new MirroredMap<NameChallenge>()

  return {
    ...{ restrictions, logins, certificates, uploaded, ingresses },
    challenges: new Challenges(names),
    admitsVisitor: (peer: { readonly ip: string }) => restrictions.admits('endpoints', peer),
    admitsAgent: (peer: { readonly ip: string }) => restrictions.admits('agent', peer),
    calls: {
      ingressNames: (change) => ingresses.take(change),
      restrict: (given) => restrictions.use(given),
      certificates: (change) => uploaded.take(change),
      challenges: (change) => names.take(change),
      loginsEnded: (endings) => logins.ended(endings),
    } satisfies Partial<PlaneCalls>,
  }
}
