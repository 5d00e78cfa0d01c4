#include "shoal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define OK(x) do { int c_ = (x); if (c_) { char m_[1000]; shoal_error_message(m_, sizeof m_); fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #x, shoal_code_name(c_), m_); exit(1); } } while (0)
static double now(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec*1e6+t.tv_nsec/1e3; }
int main(int argc,char**argv){
  if (argc>1) {
    OK(shoal_join(argv[1],"secret",6,5));
    shoal_handle a,b; OK(shoal_lookup("a",0,&a)); OK(shoal_lookup("b",0,&b));
    char buf[64]; shoal_tensor_info info; shoal_buffer m={buf,64,&info,1,0,0,0};
    for(;;){ int c=shoal_get_into(a,-1,&m); if(c==SHOAL_CLOSED)return 0; OK(c);
      if(m.tensor_count){ shoal_view v={.handle=info.handle}; OK(shoal_put(b,buf,m.length,&v,1,-1)); OK(shoal_close(info.handle)); }
      else OK(shoal_put(b,buf,m.length,NULL,0,-1)); }
  }
  char addr[64]; sprintf(addr,"@smoke%d",getpid());
  shoal_handle l,a,b; OK(shoal_listen(addr,"secret",6,&l));
  OK(shoal_queue_new(8,&a)); OK(shoal_queue_new(8,&b)); 
  char buf[64]; shoal_tensor_info info; shoal_buffer m={buf,64,&info,1,0,0,0};
  int n=1000000; 
  for(int k=0;k<2;k++){ double t=now(); for(int i=0;i<n/10;i++){ OK(shoal_put(a,"x",1,NULL,0,0)); OK(shoal_get_into(a,0,&m)); } printf("put+get small, no wait: %.3f us\n",(now()-t)/(n/10)); }
  { double t=now(); for(int i=0;i<n;i++) shoal_kind(a); printf("kind: %.3f us\n",(now()-t)/n); }
  OK(shoal_bind("a",a,1)); OK(shoal_bind("b",b,1));
  int64_t shape[1]={262144}; shoal_handle x; void*d; OK(shoal_tensor_empty((shoal_dtype){2,32,1},1,shape,&x,&d));
  ((float*)d)[0]=1;
  shoal_view v={.handle=x};
  for(int k=0;k<2;k++){ double t=now(); for(int i=0;i<n/10;i++){ OK(shoal_put(a,"x",1,&v,1,0)); OK(shoal_get_into(a,0,&m)); OK(shoal_close(info.handle)); } printf("put+get+close tensor, no wait: %.3f us\n",(now()-t)/(n/10)); }
  pid_t pid=fork(); if(!pid){ execl("/proc/self/exe","smoke",addr,(char*)0); _exit(1);} 
  OK(shoal_put(a,"x",1,&v,1,-1)); OK(shoal_get_into(b,5,&m)); shoal_close(info.handle);
  for(int k=0;k<3;k++){
  int r=30000; double t=now(); for(int i=0;i<r;i++){ OK(shoal_put(a,"x",1,NULL,0,-1)); OK(shoal_get_into(b,5,&m)); } printf("small to and fro: %.2f us\n",(now()-t)/r);
  t=now(); for(int i=0;i<r;i++){ OK(shoal_put(a,"x",1,&v,1,-1)); OK(shoal_get_into(b,5,&m)); OK(shoal_close(info.handle)); } printf("1 MiB tensor to and fro: %.2f us\n",(now()-t)/r);
  double s=0; for(int i=0;i<200;i++){ usleep(2000); t=now(); OK(shoal_put(a,"x",1,NULL,0,-1)); OK(shoal_get_into(b,5,&m)); s+=now()-t; } printf("parked 2 ms: %.2f us\n",s/200);
  s=0; for(int i=0;i<20;i++){ usleep(100000); t=now(); OK(shoal_put(a,"x",1,NULL,0,-1)); OK(shoal_get_into(b,5,&m)); s+=now()-t; } printf("parked 100 ms: %.2f us\n",s/20);
  }
  OK(shoal_finish(a)); int st; waitpid(pid,&st,0); printf("child %x\n",st); OK(shoal_leave(0)); return 0; }
