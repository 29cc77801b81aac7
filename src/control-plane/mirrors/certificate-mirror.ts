/** Keeps a data plane up to date with certificates: which of the stored ones and files serves which name. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import type { ServedCertificate } from '../../link/planes/plane-calls.ts'
import { readName } from '../../model/hostport.ts'
import { openFields, resourceAt } from '../records/sealed-fields.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { fieldsOf } from '../resources/resource.ts'
import { namesOf, tlsCertificates } from '../resources/tls-certificates.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import {
  CertificateChoice,
  type CertificatesByName,
  type NamingDomain,
  type StoredCertificate,
} from './certificate-choice.ts'
import type { CertificateFiles } from './certificate-files.ts'
import { itemsOf, mirror } from './mirror.ts'

/**
 * `changed`: names whose certificate has changed or is gone. The map is changed in place by later calls. Resolves when they are
 * in force.
 */
type ReplaceCertificates = (served: CertificatesByName, changed: readonly string[]) => unknown

export interface MirrorCertificatesOptions extends Pick<ControlTools, 'store' | 'sealer' | 'log'> {
  /** Undefined when no certificates are in files. */
  readonly files?: Pick<CertificateFiles, 'ready' | 'byName' | 'whenChanged'> | undefined
  readonly replace: ReplaceCertificates
}

type Part = StoredCertificate | NamingDomain

/** Follows the files too, until `stop`. */
export function mirrorCertificates(options: MirrorCertificatesOptions): Followed & { stop(): void } {
  const { store, sealer, files, replace, log } = options
  let choice = new CertificateChoice()
  let isLoaded = false
  const stored = mirror<Part>({
    // Certificates are unsealed once, when they are added or changed.
    ...itemsOf(store, [tlsCertificates, reservedDomains], (each) => partOf(each, sealer, log)),
    async send({ isAll, removed, set }) {
      const former = isAll ? choice.served.keys() : []
      if (isAll) choice = new CertificateChoice()
      for (const part of removed.values()) choice.put('delete', part)
      for (const part of set.values()) choice.put('add', part)
      if (isAll) choice.useFiles(files?.byName ?? new Map())
      const changed = new Set([...former, ...choice.settle()])
      isLoaded = true
      if (isAll || changed.size > 0) await replace(choice.served, [...changed])
    },
  })
  const stop = files?.whenChanged(() => {
    // The first load takes the files at its end.
    if (!isLoaded) return
    choice.useFiles(files.byName)
    const changed = choice.settle()
    if (changed.length > 0) replace(choice.served, changed)
  })
  return {
    async load() {
      await files?.ready()
      await stored.load()
    },
    apply: (changes) => stored.apply(changes),
    stop: () => stop?.(),
  }
}

function partOf(stored: StoredResource, sealer: Sealer, log: Logger): Part | undefined {
  if (stored.kind === tlsCertificates.kind) {
    const served = openCertificate(stored, sealer, log)
    const isIssued = Boolean(fieldsOf(tlsCertificates, stored).issued_for)
    return served && { names: namesOf(stored), served, isIssued }
  }
  const { domain, certificate_id: certificateId } = fieldsOf(reservedDomains, stored)
  return certificateId ? { name: readName(domain), certificateId } : undefined
}

function openCertificate({ id, fields }: StoredResource, sealer: Sealer, log: Logger): ServedCertificate | undefined {
  try {
    const opened = openFields(sealer, tlsCertificates.secrets, fields, resourceAt(id))
    const { certificate_pem: cert, private_key_pem: key, not_after } = fieldsOf(tlsCertificates, { fields: opened })
    return { id, cert, key, notAfter: not_after }
  } catch (error) {
    log.error({ err: error, certificate: id }, 'cannot unseal a certificate; it is not served')
    return undefined
  }
}
