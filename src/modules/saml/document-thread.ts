/** The code of a thread that reads SAML documents; `document-threads.ts` starts it. */
import { serveOffLoop } from '../../lib/threads/serve-off-loop.ts'
import { doSamlWork, type SamlWork } from './saml-documents.ts'

// Only `document-threads.ts` sends work, and always in this form.
serveOffLoop(async (work) => ({ result: await doSamlWork(work as SamlWork) }))
