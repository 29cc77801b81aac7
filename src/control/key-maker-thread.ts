/** What a thread that makes keys runs; `key-maker.ts` starts it. */
import { serveOffLoop } from '../lib/serve-off-loop.ts'
import { makeSshKeyPair, type SshKeyChoice } from '../lib/ssh-key-pair.ts'

// Only `key-maker.ts` sends work, and of this form.
serveOffLoop((choice) => ({ result: makeSshKeyPair(choice as SshKeyChoice) }))
