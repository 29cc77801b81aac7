/** Says whether TLS ends at the edge, and how; without `tls` in the phases, it passes through. */
import type { Phases, TlsDemands } from '../phases.ts'

export interface TlsTerminationSettings {
  readonly terminate: 'edge' | 'upstream'
  /** Null serves 1.2 and up. */
  readonly minVersion: '1.0' | '1.1' | '1.2' | '1.3' | null
  /** In PEM; an agent may give one for its endpoint. */
  readonly certificate?: { readonly cert: string; readonly key: string }
}

export function compileTlsTermination({ terminate, minVersion, certificate }: TlsTerminationSettings): Phases {
  if (terminate === 'upstream') return {}
  return { tls: { minVersion: versions[minVersion ?? '1.2'], ...(certificate && { certificate }) } }
}

const versions = {
  '1.0': 'TLSv1',
  '1.1': 'TLSv1.1',
  '1.2': 'TLSv1.2',
  '1.3': 'TLSv1.3',
} as const satisfies Record<string, TlsDemands['minVersion']>
