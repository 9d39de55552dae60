// Pages of links (search, reports): their keys.

import { bindKeys, linkKeys } from "./keys.js";

bindKeys(linkKeys("td:first-child a, .hits a.seq"));
