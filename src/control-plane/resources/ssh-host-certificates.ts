/** SSH host certificates: shown by servers instead of bare host keys, so that clients only need to trust an authority. */
import { storedKind } from './resource.ts'
import { authorityOf, certificateForm, certificateShows, signCertificate, signedFields } from './ssh-certificates.ts'

/** A year, in milliseconds. */
const USUAL_MS = 365 * 24 * 60 * 60 * 1000

export const sshHostCertificates = storedKind({
  kind: 'ssh_host_certificate',
  about: 'Certificates for SSH servers, signed by an SSH certificate authority.',
  prefix: 'shcrt_',
  access: 'account',
  form: certificateForm,
  fixed: signedFields,
  shows: certificateShows,
  async make(fields, making) {
    const signing = { kind: 'host', criticalOptions: {}, extensions: {}, usualMs: USUAL_MS } as const
    return { ...fields, ...(await signCertificate(fields, signing, making)) }
  },
  mentions: (fields) => [authorityOf(fields)],
})
