/**
 * Says whether TLS ends at the edge, and how; without `tls` in the phases, it passes through.
 *
 * @example
 * compileTlsTermination({ terminate: 'edge', minVersion: '1.3' }) // { tls: { minVersion: 'TLSv1.3' } }
 * compileTlsTermination({ terminate: 'edge', minVersion: null }) // { tls: { minVersion: 'TLSv1.2' } }
 * compileTlsTermination({ terminate: 'upstream', minVersion: null }) // {}
 */

import type { Phases, TlsDemands } from '../phases.ts'
import type { TlsTerminationSettings } from './form.ts'

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
