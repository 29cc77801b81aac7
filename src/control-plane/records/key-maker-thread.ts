/** The entry of a thread that makes keys; `key-maker.ts` starts it. */

import { makeSshKeyPair, type SshKeyChoice } from '../../lib/ssh-keys/ssh-key-pair.ts'
import { serveOffLoop } from '../../lib/threads/serve-off-loop.ts'

// Only `key-maker.ts` sends work, and of this form.
serveOffLoop((choice) => ({ result: makeSshKeyPair(choice as SshKeyChoice) }))
