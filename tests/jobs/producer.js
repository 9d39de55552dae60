// A producer as a Node application has it: adds a job, and tells what it sees in the queue.
// Usage: node producer.js URL QUEUE SESSION
const { Queue } = require("bullmq");

async function main([url, name, session]) {
  const queue = new Queue(name, { connection: { url } });
  const data = { domain: "session", entityId: session };
  await queue.add("compact", data, {
    attempts: 2,
    backoff: { type: "exponential", delay: 3000 },
    deduplication: { id: `compact:session:${session}`, keepLastIfActive: true },
  });
  const seen = await queue.getJobs(["waiting", "completed", "failed"]);
  const told = seen.map((job) => ({ id: job.id, name: job.name, data: job.data, attempts: job.opts.attempts, returned: job.returnvalue }));
  console.log(JSON.stringify({ counts: await queue.getJobCounts(), jobs: told }));
  await queue.close();
}

main(process.argv.slice(2));
