/** The `tls_termination` module: where TLS ends, and which versions of it are served. */
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import { defineModule, moduleForm } from '../module.ts'

const minVersion = Type.Optional(
  // the empty string counts as unset.
  Type.Enum(['1.0', '1.1', '1.2', '1.3', ''], {
    description:
      'Lowest TLS version served. Unset, null or empty: 1.2. Must be unset when `terminate_at` is `upstream`.',
  }),
)

const tlsForm = moduleForm({
  terminate_at: Type.Enum(['edge', 'upstream'], {
    default: 'edge',
    description:
      'Where TLS ends. `edge`: here. `upstream`: TLS passes through untouched, and modules that look inside the traffic are refused.',
  }),
  min_version: minVersion,
})

const httpsForm = moduleForm({
  // D34: accepted, so that what a GET returned can be sent back.
  terminate_at: Type.Enum(['edge'], { default: 'edge', description: 'Always `edge` on an HTTPS edge.' }),
  min_version: minVersion,
})

export interface TlsTerminationSettings {
  readonly terminate: 'edge' | 'upstream'
  /** Null serves 1.2 and up. */
  readonly minVersion: '1.0' | '1.1' | '1.2' | '1.3' | null
  /** In PEM; an agent may give one for its endpoint. */
  readonly certificate?: { readonly cert: string; readonly key: string }
}

export const tlsTermination = defineModule({
  name: 'tls_termination',
  about: 'Says where TLS ends and which versions of it are served.',
  at: { tls: tlsForm, https: httpsForm },
  needs: () => 'bytes',
  accept: (config, { at }) => {
    const { min_version, ...rest } = config
    if (min_version === undefined || min_version === '') return rest
    // Checked on a disabled module too: enabling it later must not make it invalid.
    if (config.terminate_at === 'upstream') {
      throw new Refusal(
        'MIN_VERSION_NOT_ALLOWED',
        `\`${at}min_version\` must be null when \`${at}terminate_at\` is \`upstream\`, since the edge then takes no part in the handshake; leave it out, or set \`${at}terminate_at\` to \`edge\``,
        { field: `${at}min_version` },
      )
    }
    return config
  },
  resolve: ({ terminate_at, min_version }): TlsTerminationSettings => ({
    terminate: terminate_at,
    minVersion: min_version || null,
  }),
})
