/** The `mutual_tls` module: visitors authenticate with a client certificate. */
import { Type } from '../../lib/shape/type.ts'
import { refuseRepeats } from '../../model/fields.ts'
import { defineModule, moduleForm } from '../module.ts'

const MAX_AUTHORITIES = 10

const form = moduleForm({
  certificate_authority_ids: Type.Array(Type.String({ minLength: 1, maxBytes: 255 }), {
    minItems: 1,
    maxItems: MAX_AUTHORITIES,
    description: 'Ids of the certificate authorities; a client certificate must chain to one of them.',
  }),
})

export interface MutualTlsSettings {
  /** Certificates in PEM: a client certificate must chain to one of them. */
  readonly authorities: readonly string[]
}

export const mutualTls = defineModule({
  name: 'mutual_tls',
  about: 'Asks every visitor for a client certificate that one of the certificate authorities signed.',
  at: { tls: form, https: form },
  // The edge can ask for a client certificate only in a handshake that it takes part in.
  needs: () => 'plaintext',
  reference: {
    field: 'certificate_authority_ids',
    shownAs: 'certificate_authorities',
    kinds: () => ['certificate_authority'],
  },
  accept: (config, { at }) => {
    refuseRepeats(`${at}certificate_authority_ids`, config.certificate_authority_ids)
    return config
  },
  resolve: (config, lookup): MutualTlsSettings => ({
    authorities: config.certificate_authority_ids.map((id) => lookup.authority(id)),
  }),
})
