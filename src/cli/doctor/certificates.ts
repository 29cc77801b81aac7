/** The checks of `postern doctor` for certificates: which expire, which orders failed, which files are bad. */
import { X509Certificate } from 'node:crypto'
import { isUsualKey } from '../../lib/x509/private-key.ts'
import type { ApiAnswer } from '../api/api-client.ts'
import { type Finding, toDo, well } from './finding.ts'
import { listNames } from './list-names.ts'

/** A certificate that expires this soon is not being renewed, in milliseconds. */
const SOON_MS = 7 * 86_400_000

/** `certificates` as the API lists them. */
export function expiryFinding(certificates: readonly ApiAnswer[], now: number): Finding {
  const check = 'certificates'
  const ending = certificates.filter(({ not_after }) => Date.parse(String(not_after)) < now + SOON_MS)
  if (ending.length === 0) return well(check, `${certificates.length} stored, none expires within a week`)
  const ended = ending.filter(({ not_after }) => Date.parse(String(not_after)) < now)
  const about = `${ending.length} of ${certificates.length} expire within a week (already expired: ${ended.length}): ${listNames(ending.map(label))}`
  return toDo(
    check,
    about,
    'upload new ones with `postern api tls-certificates update`; those with `issued_at` are renewed by the server, see its orders',
  )
}

/** D109: uploaded certificates whose keys are larger than those that are accepted today. */
export function keyFindings(certificates: readonly ApiAnswer[]): Finding[] {
  const large = certificates.filter(({ certificate_pem: pem, issued_at }) => !issued_at && hasLargeKey(String(pem)))
  if (large.length === 0) return []
  const about = `${large.length} uploaded certificates have larger keys than are accepted now, and each handshake with one holds up a worker: ${listNames(large.map(label))}`
  const next = 'upload ones with RSA of 2048 to 4096 bits, ECDSA P-256 or P-384, or Ed25519 in their place'
  return [toDo('certificate keys', about, next)]
}

function hasLargeKey(pem: string): boolean {
  try {
    return !isUsualKey(new X509Certificate(pem).publicKey)
  } catch {
    // What cannot be read here was accepted, and is served.
    return false
  }
}

/** `domains` as the API lists reserved domains and agent ingresses. */
export function orderFindings(domains: readonly ApiAnswer[]): Finding[] {
  const managed = domains.filter(({ certificate_management_policy: policy }) => policy)
  const failed = managed.flatMap(({ domain, certificate_management_status: status }) => {
    const job = (status as StatusView)?.provisioning_job
    return job?.error_code ? [{ domain: String(domain), job }] : []
  })
  if (failed.length === 0) {
    return [well('orders', `${managed.length} names have managed certificates, and no order failed`)]
  }
  return failed.map(({ domain, job }) => {
    const again = job.retries_at ? `the next attempt is at ${job.retries_at}` : 'it is not retried automatically'
    return toDo(`order of ${domain}`, `${job.error_code}: ${job.msg}`, `fix the cause; ${again}`)
  })
}

/** `metrics` as the server writes them. */
export function metricFindings(metrics: string): Finding[] {
  const value = (name: string) => {
    const row = metrics.split('\n').find((line) => line.startsWith(`${name} `))
    return row === undefined ? undefined : Number(row.slice(row.lastIndexOf(' ') + 1))
  }
  const findings: Finding[] = []
  const bad = value('postern_certificate_files{state="bad"}')
  if (bad !== undefined) {
    const served = value('postern_certificate_files{state="served"}') ?? 0
    const about = `of the certificates in --certificate-dir, ${served} are served and ${bad} are bad`
    const next = 'the log says why: look for `certificate file`'
    findings.push(bad > 0 ? toDo('certificate files', about, next) : well('certificate files', about))
  }
  const waiting = value('postern_certificate_names{next="first"}')
  if (waiting !== undefined) {
    const failing = value('postern_certificate_names_failing') ?? 0
    const about = `${waiting} names wait for their first certificate; the last attempt failed for ${failing} names`
    const next = 'the log says why: look for `certificate`; the names must point to this server, on port 80 or 443'
    findings.push(failing > 0 ? toDo('names', about, next) : well('names', about))
  }
  const refused = value('postern_descriptor_refusals_total')
  if (refused !== undefined && refused > 0) {
    const about = `${refused} connections were closed for lack of file descriptors`
    findings.push(toDo('descriptors', about, "raise the service's limit of open files"))
  }
  return findings
}

type StatusView =
  | {
      readonly provisioning_job?: {
        readonly error_code: string | null
        readonly msg: string
        readonly retries_at: string | null
      } | null
    }
  | null
  | undefined

function label({ id, subject_alternative_names: names }: ApiAnswer): string {
  const { dns_names: all = [] } = (names ?? {}) as { readonly dns_names?: readonly string[] } // as the API shows it
  return all[0] ?? String(id)
}
